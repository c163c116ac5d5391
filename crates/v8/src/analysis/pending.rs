//! Pending work: functions behind promises that have not settled, timers, listeners, the runtime's
//! handles, and values that AsyncLocalStorage carries along.
//!
//! ```text
//!  Promise --reactions_or_result--> PromiseReaction --> closure of then(), or
//!                                        closure of await --context--> Context --extension--> Generator --function--> closure
//! ```
//!
//! A pending promise without a reaction looks like a promise that settled with a small number. Such
//! promises are left out.

use std::collections::HashMap;

use heapr_table::SortRows as _;
use rustc_hash::FxHashMap;

use super::heap_view::{EdgeName, HeapView, field};
use super::naming::Naming;
use super::retaining_paths::path_from_root;
use super::scripts::Place;
use crate::{EdgeKind, NodeKind};

/// Reason why an object is in memory although no code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Waiting {
    /// Async function that is suspended at an `await`.
    Await,
    /// Function passed to `then`, `catch` or `finally`.
    Then,
    /// Function of `setTimeout` or `setInterval`.
    Timer,
    /// Function that an emitter calls.
    Listener,
    /// Socket, process, file or request that the runtime waits for.
    Handle,
    /// Value that AsyncLocalStorage passes to the continuation.
    Store,
}

impl Waiting {
    /// Name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Await => "await",
            Self::Then => "then",
            Self::Timer => "timer",
            Self::Listener => "listener",
            Self::Handle => "handle",
            Self::Store => "store",
        }
    }
}

/// Group of pending things of one kind, with the same function, location and event.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// Kind of the group.
    pub waiting: Waiting,
    /// Name of the function that continues, or class of the handle or store.
    pub what: String,
    /// Source location of that function or class.
    pub place: Option<Place>,
    /// Event that a listener listens to.
    pub event: Option<String>,
    /// Number of things in the group.
    pub count: u64,
    /// Sum of the bytes that each retains on its own.
    pub retained_bytes: u64,
    /// Node of the one that retains most.
    pub example: u32,
    /// Name of its holder.
    pub held_by: Option<String>,
}

/// Classes of the runtime's own objects behind sockets, files and requests.
const HANDLES: &[&str] = &[
    "TCP",
    "Pipe",
    "TTY",
    "UDP",
    "Process",
    "FSEvent",
    "FSReqCallback",
    "FileHandle",
    "StatWatcher",
    "MessagePort",
    "TLSWrap",
    "HTTPParser",
    "HTTP2SESSION",
    "HTTP2STREAM",
    "ChannelWrap",
    "TCPConnectWrap",
    "PipeConnectWrap",
    "WriteWrap",
    "ShutdownWrap",
    "GetAddrInfoReqWrap",
    "QueryReqWrap",
    "Worker",
    "Zlib",
    "BrotliEncoder",
    "BrotliDecoder",
];

/// Property of an emitter that holds its listeners.
const EVENTS: &str = "_events";
/// Property by which a promise or request carries the store (Node until 23).
const STORE: &str = "<symbol kResourceStore>";

/// Returns the `top` groups of pending things, most retained bytes first.
pub fn pending<H: HeapView>(heap: &H, naming: &Naming<'_, H>, top: usize) -> Vec<Pending> {
    let mut found =
        Found { heap, naming, events_name: None, classes: FxHashMap::default(), groups: HashMap::new() };
    heap.visit_strings(0..heap.string_count(), &mut |number, text| found.look_at_name(number, text));
    for node in 0..heap.node_count() {
        found.look_at(node);
    }
    let mut groups: Vec<Pending> = found.groups.into_values().map(|(group, _)| group).collect();
    groups.sort_rows_by(|a, b| {
        (b.retained_bytes, b.count, &a.what, &a.event).cmp(&(a.retained_bytes, a.count, &b.what, &b.event))
    });
    groups.truncate(top);
    for group in &mut groups {
        group.held_by = holder(heap, naming, group.example);
    }
    groups
}

/// Returns the name of the outermost node below the last step of the program's code on the path to
/// `node`.
fn holder<H: HeapView>(heap: &H, naming: &Naming<'_, H>, node: u32) -> Option<String> {
    let path = path_from_root(heap, naming, node);
    let above = path.len().checked_sub(1)?;
    let last_own = path[..above].iter().rposition(|step| step.place.is_some());
    let held = last_own.map_or(above, |at| at + 1);
    if held == above {
        return naming.held_by(node);
    }
    Some(naming.call(heap.node_of_id(path[held].id)?).text)
}

/// Classes of pending objects.
#[derive(Debug, Clone, Copy)]
enum Class {
    Promise,
    Timer,
    Handle,
}

/// Kind, name of function or class, source location and event.
type Group = (Waiting, String, Option<Place>, Option<String>);

struct Found<'a, H> {
    heap: &'a H,
    naming: &'a Naming<'a, H>,
    /// String number of [`EVENTS`]: comparing numbers is faster than comparing the names of all
    /// edges.
    events_name: Option<u32>,
    /// String numbers of the searched classes.
    classes: FxHashMap<u32, Class>,
    /// Each group with the bytes that its example retains.
    groups: HashMap<Group, (Pending, u64)>,
}

impl<H: HeapView> Found<'_, H> {
    fn look_at_name(&mut self, number: u32, text: &[u8]) {
        let class = match text {
            b"Promise" => Class::Promise,
            b"Timeout" | b"Immediate" => Class::Timer,
            text if HANDLES.iter().any(|handle| handle.as_bytes() == text) => Class::Handle,
            _ => {
                if text == EVENTS.as_bytes() && self.events_name.is_none() {
                    self.events_name = Some(number);
                }
                return;
            }
        };
        self.classes.insert(number, class);
    }

    fn look_at(&mut self, node: u32) {
        let heap = self.heap;
        let kind = heap.kind(node);
        if !matches!(kind, NodeKind::OBJECT | NodeKind::NATIVE | NodeKind::HIDDEN) {
            return;
        }
        match self.classes.get(&heap.name_index(node)) {
            Some(Class::Promise) => self.promise(node),
            Some(Class::Timer) => self.timer(node),
            Some(Class::Handle) if kind == NodeKind::OBJECT => {
                let name = heap.name(node).into_owned();
                self.add(Waiting::Handle, name, None, None, node, heap.retained_bytes(node));
            }
            _ if kind == NodeKind::OBJECT => self.emitter(node),
            _ => {}
        }
    }

    fn promise(&mut self, promise: u32) {
        let heap = self.heap;
        let store = field(heap, promise, &[STORE]).filter(|&store| heap.kind(store) != NodeKind::HIDDEN);
        let Some(reaction) = field(heap, promise, &["reactions_or_result"])
            .filter(|&target| heap.name(target) == "system / PromiseReaction")
        else {
            return;
        };
        if let Some(store) = store {
            let class = self.naming.own_name(store);
            self.add(
                Waiting::Store,
                class,
                self.naming.place(store),
                None,
                store,
                heap.retained_bytes(store),
            );
        }
        // Each further call of `then()` is linked before the previous one.
        let mut reaction = Some(reaction);
        let mut left = MAX_REACTIONS;
        while let Some(here) = reaction.filter(|_| left > 0) {
            left -= 1;
            reaction = None;
            let mut is_told = false;
            for edge in heap.edges(here) {
                let target = heap.target(edge);
                if heap.name(target) == "system / PromiseReaction" {
                    reaction = Some(target);
                } else if heap.kind(target) == NodeKind::CLOSURE && !is_told {
                    is_told = self.reaction(promise, target);
                }
            }
        }
    }

    /// Adds a function that a promise will call. Returns false for a function of the engine that
    /// leads to no function of the program.
    fn reaction(&mut self, promise: u32, closure: u32) -> bool {
        let heap = self.heap;
        if heap.location(closure).is_some() {
            let retained = heap.retained_bytes(closure);
            self.function(Waiting::Then, closure, None, promise, retained);
            return true;
        }
        let generator =
            field(heap, closure, &["context"]).and_then(|context| field(heap, context, &["extension"]));
        let Some((generator, function)) =
            generator.and_then(|generator| Some((generator, field(heap, generator, &["function"])?)))
        else {
            return false;
        };
        let retained = heap.retained_bytes(generator);
        self.function(Waiting::Await, function, None, promise, retained);
        true
    }

    fn timer(&mut self, timer: u32) {
        let heap = self.heap;
        let called = field(heap, timer, &["_onTimeout", "_onImmediate"])
            .filter(|&called| heap.kind(called) == NodeKind::CLOSURE);
        if let Some(called) = called {
            self.function(Waiting::Timer, called, None, timer, heap.retained_bytes(timer));
        }
    }

    /// Adds an EventEmitter's listeners: it holds a function or a list of functions per event.
    fn emitter(&mut self, emitter: u32) {
        let heap = self.heap;
        let mut fields =
            heap.graph().edges(emitter).filter(|&edge| heap.edge_kind(edge) == EdgeKind::PROPERTY);
        let events = fields.find(|&edge| Some(heap.edge_name_index(edge)) == self.events_name);
        let Some(events) =
            events.map(|edge| heap.target(edge)).filter(|&it| heap.kind(it) == NodeKind::OBJECT)
        else {
            return;
        };
        for edge in heap.edges(events) {
            let (EdgeKind::PROPERTY, EdgeName::Name(event)) = (heap.edge_kind(edge), heap.edge_name(edge))
            else {
                continue;
            };
            if event == "__proto__" {
                continue;
            }
            let target = heap.target(edge);
            match heap.kind(target) {
                NodeKind::CLOSURE => self.listener(target, &event, emitter),
                NodeKind::OBJECT => {
                    let elements = field(heap, target, &["elements"]).into_iter().chain([target]);
                    for list in elements.collect::<Vec<_>>() {
                        for item in heap.edges(list) {
                            let listener = heap.target(item);
                            let is_item = matches!(heap.edge_kind(item), EdgeKind::ELEMENT);
                            if is_item && heap.kind(listener) == NodeKind::CLOSURE {
                                self.listener(listener, &event, emitter);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn listener(&mut self, listener: u32, event: &str, emitter: u32) {
        let heap = self.heap;
        // `once()` wraps the listener.
        let own = field(heap, listener, &["listener"]).filter(|&own| heap.kind(own) == NodeKind::CLOSURE);
        let function = own.unwrap_or(listener);
        if self.naming.place(function).is_some_and(|place| !place.is_of_the_runtime()) {
            self.function(Waiting::Listener, function, Some(event), emitter, heap.retained_bytes(listener));
        }
    }

    fn function(&mut self, waiting: Waiting, function: u32, event: Option<&str>, node: u32, retained: u64) {
        let place = self.naming.place(function);
        // Waiting by the runtime itself is not a leak.
        if place.as_ref().is_some_and(Place::is_of_the_runtime) {
            return;
        }
        self.add(waiting, self.naming.own_name(function), place, event.map(str::to_owned), node, retained);
    }

    fn add(
        &mut self,
        waiting: Waiting,
        what: String,
        place: Option<Place>,
        event: Option<String>,
        node: u32,
        retained: u64,
    ) {
        let key = (waiting, what, place, event);
        let (group, largest) = self.groups.entry(key).or_insert_with_key(|(waiting, what, place, event)| {
            let group = Pending {
                waiting: *waiting,
                what: what.clone(),
                place: place.clone(),
                event: event.clone(),
                count: 0,
                retained_bytes: 0,
                example: node,
                held_by: None,
            };
            (group, retained)
        });
        group.count += 1;
        group.retained_bytes = group.retained_bytes.saturating_add(retained);
        if retained > *largest {
            (*largest, group.example) = (retained, node);
        }
    }
}

/// Largest number of reactions followed per promise. A damaged file may contain cycles.
const MAX_REACTIONS: usize = 1 << 16;
