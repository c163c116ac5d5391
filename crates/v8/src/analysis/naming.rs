//! Names for objects as a programmer would say them: `MemoryStore.sessions`, the variable `cache`
//! in app.js.

mod program_holders;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::modules;
use super::scripts::{Place, is_of_the_runtime, place_of};
use super::storage::{is_dictionary, is_of_the_engine};
use crate::objects::ScriptPaths;
use crate::objects::{EdgeName, Objects};
use crate::{EdgeKind, Location, NodeKind};
use program_holders::Holder;

/// Number of retainers from which the naming edge of a node is cached.
const MAX_RETAINERS_LOOKED_AT: usize = 512;
/// Largest number of retainers searched for the edge that names a node. Popular objects have
/// millions.
const MAX_RETAINERS_OF_POPULAR: usize = 1 << 16;
/// Largest number of users of a context that are searched for its functions. They may come after as
/// many contexts of calls.
const MAX_CONTEXT_USERS_LOOKED_AT: usize = 1 << 16;
/// Largest number of fields in a name. The end of a longer name says more than its beginning.
const MAX_FIELDS_IN_NAME: usize = 6;
/// Largest number of holders passed while a name is made. Holders without a field name may form a
/// cycle.
const MAX_HOLDERS_OF_A_NAME: usize = 64;
/// Names objects by what holds them.
#[derive(Debug)]
pub struct Naming<'a, H: ?Sized> {
    heap: &'a H,
    scripts: ScriptPaths,
    /// Cached source locations of contexts: thousands of owners can be variables of one module.
    places_of_contexts: Mutex<HashMap<u32, Option<ContextPlace>>>,
    edges_of_popular: Mutex<HashMap<u32, Option<u32>>>,
}

/// Source location that the variables of a context belong to.
#[derive(Debug, Clone)]
struct ContextPlace {
    /// Location of a function that uses the variables, in its script.
    location: Option<Location>,
    place: Place,
}

/// Progress of a name on the path up from an object.
#[derive(Debug, Clone)]
struct Way {
    at: u32,
    /// Field names so far, the innermost first.
    fields: Vec<String>,
    /// Context of the last field, if that field is a variable.
    context: Option<u32>,
}

/// Name and source location of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Name, such as `MemoryStore.sessions`, `cache (variable in /srv/app.js)` or
    /// `globalThis.history`.
    pub text: String,
    /// Fields from the named holder down to the object, the outermost first.
    pub fields: Vec<String>,
    /// Class, script or root that the name begins with.
    pub base: String,
    /// Whether the fields begin with a variable of the script that is the base.
    pub is_variable: bool,
    /// Node that the name begins with.
    pub base_node: u32,
    /// Source location of the base's constructor, function or module. If the base belongs to a
    /// package or the runtime: the location of the program's own holder.
    pub place: Option<Place>,
    /// Program's name for the holder of the base, if the base is an object of a package or the
    /// runtime: `EventLog.entries`, `render (variable in /srv/app.js)`.
    pub part_of: Option<String>,
    /// True if the base is an object of the runtime that only the runtime is known to hold.
    pub is_held_by_the_runtime: bool,
}

impl Called {
    /// Returns the whole name of the object, or of its field: `Hash.__data__ of render (variable in
    /// …)`.
    pub fn whole(&self, field: Option<&str>) -> String {
        let named = match field {
            None => self.text.clone(),
            Some(field) if self.is_variable => match self.fields.as_slice() {
                [] => format!("{field} (variable in {})", self.base),
                fields => format!("{}.{field} (variable in {})", joined(fields), self.base),
            },
            Some(field) => format!("{}.{field}", self.text),
        };
        match &self.part_of {
            Some(holder) => format!("{named} of {holder}"),
            None if self.is_held_by_the_runtime => format!("{named} (held by the runtime)"),
            None => named,
        }
    }

    /// Whether the base belongs to the program's code, as far as the snapshot shows.
    pub(crate) fn is_of_the_program(&self) -> bool {
        self.place.as_ref().is_some_and(|place| !place.is_of_the_runtime())
            || self.base == "globalThis"
                && self.fields.first().is_some_and(|first| !first.starts_with("<symbol"))
    }
}

impl<'a, H: Objects + ?Sized> Naming<'a, H> {
    /// Prepares names for objects of `heap`.
    pub fn of(heap: &'a H) -> Self {
        Self {
            heap,
            scripts: heap.script_paths(),
            places_of_contexts: Mutex::default(),
            edges_of_popular: Mutex::default(),
        }
    }

    /// Heap whose objects are named.
    pub fn heap(&self) -> &'a H {
        self.heap
    }

    /// Returns the name of `node`.
    pub fn call(&self, node: u32) -> Called {
        let mut way = Way { at: node, fields: Vec::new(), context: None };
        for _ in 0..MAX_HOLDERS_OF_A_NAME {
            let is_told = way.fields.len() >= MAX_FIELDS_IN_NAME
                || way.context.is_some()
                || self.has_own_name(way.at)
                || self.is_context(way.at)
                || modules::builtin_of_exports(self.heap, way.at).is_some();
            if is_told || !self.go_up(&mut way) {
                break;
            }
        }
        if modules::builtin_of_exports(self.heap, way.at).is_some() {
            return self.called(way);
        }
        // A class of the runtime says what kind of object it is; the program's own name says whose
        // it is.
        if self.is_of_the_runtime(&way)
            && let Some(called) = self.called_by_the_program(&way)
        {
            return called;
        }
        let holder = self.holder_of_base(&way);
        let mut called = self.called(way);
        match holder {
            Holder::Program(holder) => {
                called.place = holder.place.or(called.place);
                called.part_of = Some(holder.text);
            }
            Holder::Runtime => called.is_held_by_the_runtime = true,
            Holder::Unknown => {}
        }
        called
    }

    /// Moves `way` to the next holder. Returns false if no edge leads further up.
    fn go_up(&self, way: &mut Way) -> bool {
        if let Some((name, context)) = modules::export_of(self.heap, way.at) {
            way.fields.push(shortened(&name));
            way.at = context;
            way.context = Some(context);
            return true;
        }
        let Some(edge) = self.naming_edge(way.at) else { return false };
        let holder = self.heap.source(edge);
        if self.heap.edge_kind(edge) == EdgeKind::CONTEXT {
            way.context = Some(holder);
        }
        way.fields.extend(self.field_name(edge));
        way.at = holder;
        true
    }

    /// Returns the name of the best holder of `node`, with the field that refers to `node`.
    pub fn held_by(&self, node: u32) -> Option<String> {
        let edge = self.naming_edge(node)?;
        let holder = self.call(self.heap.source(edge)).text;
        Some(match self.field_name(edge) {
            Some(field) if field.starts_with('[') => format!("{holder}{field}"),
            Some(field) => format!("{holder}.{field}"),
            None => holder,
        })
    }

    fn called(&self, way: Way) -> Called {
        let Way { at: base_node, mut fields, context } = way;
        fields.reverse();
        if context.is_some() || self.is_context(base_node) {
            let place = self.place_of_context(base_node);
            let script = place.as_ref().map_or("a function", |place| place.script.as_str()).to_owned();
            let text = if fields.is_empty() {
                format!("variables of {script}")
            } else {
                format!("{} (variable in {script})", joined(&fields))
            };
            return Called {
                text,
                fields,
                base: script,
                is_variable: true,
                base_node,
                place,
                part_of: None,
                is_held_by_the_runtime: false,
            };
        }
        let place = self.heap.location(base_node).map(|location| place_of(&self.scripts, location));
        // Exports of Node's modules are named as programs write them: `fs.readCache`.
        let base =
            modules::builtin_of_exports(self.heap, base_node).unwrap_or_else(|| self.own_name(base_node));
        let text = match fields.first() {
            None => base.clone(),
            Some(first) if first.starts_with('[') => format!("{base}{}", joined(&fields)),
            Some(_) => format!("{base}.{}", joined(&fields)),
        };
        Called {
            text,
            fields,
            base,
            is_variable: false,
            base_node,
            place,
            part_of: None,
            is_held_by_the_runtime: false,
        }
    }

    /// Returns the class of an object, the name of a function, or the group of any other node.
    pub(crate) fn own_name(&self, node: u32) -> String {
        match self.heap.kind(node) {
            NodeKind::CLOSURE => match self.heap.name(node) {
                name if name.is_empty() => "function".to_owned(),
                name => format!("function {}", self.name_in_sources(node, name)),
            },
            NodeKind::OBJECT if self.is_global(node) => "globalThis".to_owned(),
            NodeKind::SYNTHETIC if self.heap.name(node).is_empty() => "(root)".to_owned(),
            NodeKind::SYNTHETIC | NodeKind::HIDDEN if !self.heap.name(node).is_empty() => {
                self.heap.name(node).into_owned()
            }
            NodeKind::OBJECT => self.name_in_sources(node, self.heap.class_name(node)),
            _ => self.heap.class_name(node).into_owned(),
        }
    }

    /// Returns the original name of a function, or of an object's class, that a minifier renamed.
    pub(crate) fn name_in_sources(&self, node: u32, name: Cow<'_, str>) -> String {
        let location = self.heap.location(node);
        let original = location.and_then(|location| self.scripts.original_name(location, &name));
        original.unwrap_or_else(|| name.into_owned())
    }

    fn is_global(&self, node: u32) -> bool {
        is_global_class(&self.heap.name(node))
    }

    /// Whether a name begins with an object of the runtime to which programs add properties
    /// (`process`, a module), followed by a field of the program. Fields of the runtime that grow
    /// are excluded.
    pub(crate) fn hangs_on_the_runtime(&self, called: &Called) -> bool {
        let is_own = |field: &String| field.starts_with(['<', '_']) || field == "moduleLoadList";
        let base = called.base_node;
        self.is_known_of_the_runtime(base)
            && !self.is_global(base)
            && called.fields.first().is_some_and(|first| !is_own(first))
    }

    /// Whether the node is the exports of a Node module.
    pub(crate) fn is_builtin_module(&self, node: u32) -> bool {
        modules::builtin_of_exports(self.heap, node).is_some()
    }

    /// Whether the node is the context of a function.
    pub(crate) fn is_context(&self, node: u32) -> bool {
        matches!(self.heap.kind(node), NodeKind::OBJECT | NodeKind::HIDDEN)
            && self.heap.name(node) == "system / Context"
    }

    /// Whether the node's own class says what it is. Generic classes such as `Array` do not.
    fn has_own_name(&self, node: u32) -> bool {
        match self.heap.kind(node) {
            NodeKind::OBJECT => {
                let name = self.heap.name(node);
                !is_generic_class(&name) && name != "system / Context"
            }
            NodeKind::NATIVE => !is_of_the_engine(self.heap, node),
            NodeKind::SYNTHETIC => true,
            NodeKind::CLOSURE => {
                let place = self.heap.location(node).map(|location| place_of(&self.scripts, location));
                !self.heap.name(node).is_empty() && place.is_some_and(|place| !place.is_of_the_runtime())
            }
            _ => false,
        }
    }

    /// Returns the edge into `node` that best explains why it is alive: a named edge from an object
    /// nearer to the roots.
    pub(crate) fn naming_edge(&self, node: u32) -> Option<u32> {
        let few = self.heap.edges_into(node, MAX_RETAINERS_LOOKED_AT);
        if few.len() < MAX_RETAINERS_LOOKED_AT {
            return self.telling_edge(node, &few);
        }
        let mut popular = self.edges_of_popular.lock().unwrap_or_else(PoisonError::into_inner);
        *popular
            .entry(node)
            .or_insert_with(|| self.telling_edge(node, &self.heap.edges_into(node, MAX_RETAINERS_OF_POPULAR)))
    }

    fn telling_edge(&self, node: u32, edges: &[u32]) -> Option<u32> {
        let found = self.most_telling(node, edges)?;
        if !self.is_of_a_moment(self.heap.source(found)) {
            return Some(found);
        }
        // A running function refers to the node, which says nothing about its permanent holder.
        let keeping = edges.iter().copied().filter(|&edge| {
            let holder = self.heap.source(edge);
            !self.is_of_a_moment(holder) && self.heap.kind(holder) != NodeKind::SYNTHETIC
        });
        let keeping: Vec<u32> =
            keeping.filter(|&edge| !self.is_kept_by(self.heap.source(edge), node)).collect();
        self.most_telling(node, &keeping).or(Some(found))
    }

    /// Whether a node stands for references from running functions: V8's groups below "(GC roots)",
    /// or the stack in other engines.
    fn is_of_a_moment(&self, node: u32) -> bool {
        self.heap.kind(node) == NodeKind::SYNTHETIC
            && matches!(&*self.heap.name(node), "(Handle scope)" | "(Stack roots)" | "(GC roots)")
    }

    /// Whether `above` dominates `node`, within a bounded number of steps. Returns true if the
    /// bound is reached.
    fn is_kept_by(&self, node: u32, above: u32) -> bool {
        const MAX_STEPS: usize = 1 << 12;
        let mut at = node;
        for _ in 0..MAX_STEPS {
            let next = self.heap.dominator(at);
            if at == above || next == at {
                return at == above;
            }
            at = next;
        }
        true
    }

    fn most_telling(&self, node: u32, edges: &[u32]) -> Option<u32> {
        let heap = self.heap;
        let distance = heap.distance(node);
        edges
            .iter()
            .filter_map(|&edge| {
                let source = heap.source(edge);
                let kind = heap.edge_kind(edge);
                if kind == EdgeKind::WEAK || source == node {
                    return None;
                }
                let mut doubts = 0;
                if is_of_the_engine(heap, source) {
                    doubts += 2;
                }
                // Hidden edges of an object include the temporary values of a suspended function,
                // which a variable usually holds as well.
                if kind == EdgeKind::HIDDEN && heap.kind(source) == NodeKind::OBJECT {
                    doubts += 4;
                }
                if kind != EdgeKind::ELEMENT && kind != EdgeKind::HIDDEN {
                    let name = heap.string(heap.edge_name_index(edge));
                    if matches!(&*name, "__proto__" | "map" | "constructor" | "prototype")
                        || heap.kind(source) == NodeKind::CODE
                    {
                        doubts += 4;
                    }
                    // Key side of a WeakMap entry: the name describes the table, not the value.
                    if name.starts_with("part of key") || name.contains(" pair in WeakMap") {
                        doubts += 1;
                    }
                }
                if heap.distance(source) >= distance {
                    doubts += 3;
                }
                if heap.kind(source) == NodeKind::SYNTHETIC {
                    doubts += 1;
                }
                let rank = match kind {
                    EdgeKind::PROPERTY | EdgeKind::CONTEXT => 0,
                    EdgeKind::ELEMENT => 1,
                    EdgeKind::INTERNAL => 2,
                    EdgeKind::HIDDEN => 3,
                    _ => 4,
                };
                Some(((doubts, heap.distance(source), rank), edge))
            })
            .min_by(|(one, edge), (other, other_edge)| {
                one.cmp(other).then_with(|| self.in_order_of_names(*edge, *other_edge))
            })
            .map(|(_, edge)| edge)
    }

    /// Orders equally good edges by name, symbols last. Node numbers differ between runs and decide
    /// only between equal names.
    fn in_order_of_names(&self, one: u32, other: u32) -> Ordering {
        let heap = self.heap;
        let key = |edge: u32| match heap.edge_name(edge) {
            EdgeName::Index(index) => (false, index, Cow::Borrowed("")),
            EdgeName::Name(name) => (name.starts_with("<symbol"), 0, name),
        };
        let nodes = || (heap.source(one), one).cmp(&(heap.source(other), other));
        key(one).cmp(&key(other)).then_with(nodes)
    }

    /// Returns a field as it appears in a name, or `None` for fields that only the engine sees.
    fn field_name(&self, edge: u32) -> Option<String> {
        let holder = self.heap.source(edge);
        let is_storage = self.heap.kind(holder) == NodeKind::ARRAY;
        match (self.heap.edge_kind(edge), self.heap.edge_name(edge)) {
            (EdgeKind::ELEMENT, _) => Some("[…]".to_owned()),
            (EdgeKind::PROPERTY, _)
                if is_dictionary(self.heap, holder) && !modules::is_exports(self.heap, holder) =>
            {
                Some("[…]".to_owned())
            }
            (EdgeKind::INTERNAL | EdgeKind::HIDDEN, _) if is_storage => Some("[…]".to_owned()),
            (EdgeKind::CONTEXT, EdgeName::Name(name)) => {
                Some(shortened(&self.variable_in_sources(holder, name)))
            }
            (EdgeKind::PROPERTY | EdgeKind::SHORTCUT, EdgeName::Name(name)) => Some(shortened(&name)),
            (EdgeKind::INTERNAL, EdgeName::Name(name)) => match &*name {
                "" | "elements" | "table" | "properties" | "context" | "previous" | "value" | "extension" => {
                    None
                }
                "parameters_and_registers" => Some("<variables>".to_owned()),
                name if name.ends_with(')') && name.contains(" pair in WeakMap") => Some("[…]".to_owned()),
                name => Some(shortened(name)),
            },
            _ => None,
        }
    }

    /// Describes how an edge holds its target: `.name`, `[3]`, `variable name`, `(internal) name`.
    pub(crate) fn edge_in_words(&self, edge: u32) -> String {
        let heap = self.heap;
        match (heap.edge_kind(edge), heap.edge_name(edge)) {
            (EdgeKind::ELEMENT, EdgeName::Index(index)) => format!("[{index}]"),
            (EdgeKind::CONTEXT, EdgeName::Name(name)) => {
                format!("variable {}", self.variable_in_sources(heap.source(edge), name))
            }
            (EdgeKind::PROPERTY, EdgeName::Name(name)) => format!(".{name}"),
            (_, EdgeName::Name(name)) => format!("({name})"),
            (_, EdgeName::Index(index)) => format!("({index})"),
        }
    }

    /// Returns the original name of a context's variable that a minifier renamed, if that is
    /// certain.
    pub(super) fn variable_in_sources<'n>(&self, context: u32, name: Cow<'n, str>) -> Cow<'n, str> {
        if !self.scripts.has_maps() {
            return name;
        }
        let location = self.belongs(context).and_then(|belongs| belongs.location);
        let original = location.and_then(|location| self.scripts.original_variable(location, &name));
        original.map_or(name, Cow::Owned)
    }

    /// Returns the source location of the first function that uses a context's variables. It stands
    /// for the function that the variables belong to.
    pub(crate) fn place_of_context(&self, context: u32) -> Option<Place> {
        self.belongs(context).map(|belongs| belongs.place)
    }

    fn belongs(&self, context: u32) -> Option<ContextPlace> {
        let mut places = self.places_of_contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(&context) {
            return place.clone();
        }
        let place = self.first_function_of(context).or_else(|| {
            let script = modules::script_of_context(self.heap, context)?;
            Some(ContextPlace { location: None, place: Place { script, line: 1, column: 1 } })
        });
        places.insert(context, place.clone());
        place
    }

    fn first_function_of(&self, context: u32) -> Option<ContextPlace> {
        let heap = self.heap;
        // Several functions share a context; the first in the text is closest to its beginning.
        let mut best: Option<ContextPlace> = None;
        for &edge in heap.edges_into(context, MAX_CONTEXT_USERS_LOOKED_AT).iter() {
            let source = heap.source(edge);
            if heap.kind(source) != NodeKind::CLOSURE || heap.edge_kind(edge) != EdgeKind::INTERNAL {
                continue;
            }
            let Some(location) = heap.location(source) else { continue };
            let place = place_of(&self.scripts, location);
            let is_earlier =
                |best: &ContextPlace| (place.line, place.column) < (best.place.line, best.place.column);
            if best.as_ref().is_none_or(is_earlier) {
                best = Some(ContextPlace { location: Some(location), place });
            }
        }
        best
    }

    /// Returns where an object was constructed, where a function is defined, or where a context's
    /// variables belong.
    pub fn place(&self, node: u32) -> Option<Place> {
        if self.is_context(node) {
            return self.place_of_context(node);
        }
        self.heap.location(node).map(|location| place_of(&self.scripts, location))
    }

    /// Returns a function or object of the program's own code near `node`, with its source
    /// location. Examples: a timer's callback, a listener's handler.
    pub(crate) fn place_within(&self, node: u32) -> Option<(String, Place)> {
        const MAX_NODES: usize = 64;
        let heap = self.heap;
        let mut seen = vec![node];
        let mut head = 0;
        while head < seen.len() && head < MAX_NODES {
            let at = seen[head];
            head += 1;
            if let Some(place) = heap.location(at).map(|location| place_of(&self.scripts, location))
                && !is_of_the_runtime(&place.script)
                && !place.script.starts_with("script ")
            {
                return Some((self.own_name(at), place));
            }
            for edge in heap.edges(at) {
                let target = heap.target(edge);
                let is_of_the_object = heap.dominator(target) == at || heap.kind(target) == NodeKind::CLOSURE;
                let is_strong = heap.edge_kind(edge) != EdgeKind::WEAK;
                if is_of_the_object && is_strong && seen.len() < MAX_NODES && !seen.contains(&target) {
                    seen.push(target);
                }
            }
        }
        None
    }
}

/// Whether a class belongs to the language and says nothing about an object's purpose.
pub(super) fn is_generic_class(name: &str) -> bool {
    matches!(
        name,
        "Object"
            | "Array"
            | "Map"
            | "Set"
            | "WeakMap"
            | "WeakSet"
            | "Promise"
            | "Function"
            | ""
            | "Arguments"
            | "ArrayBuffer"
            | "Uint8Array"
            | "Buffer"
            | "FastBuffer"
            | "Generator"
            | "Iterator"
            | "Error"
    ) || name.starts_with('{')
}

/// Whether a class is the global object's: `global` in Node (from 24 on `global (global*)`),
/// `Window / http://…` in a page.
pub(super) fn is_global_class(name: &str) -> bool {
    matches!(name, "global" | "globalThis" | "Window")
        || ["Window ", "global "].iter().any(|start| name.starts_with(start))
}

fn joined(fields: &[String]) -> String {
    let mut text = String::new();
    for field in fields {
        if !text.is_empty() && !field.starts_with('[') {
            text.push('.');
        }
        text.push_str(field);
    }
    text
}

fn shortened(name: &str) -> String {
    const MAX_CHARS: usize = 60;
    if name.chars().count() <= MAX_CHARS {
        return name.to_owned();
    }
    let mut short: String = Cow::Borrowed(name).chars().take(MAX_CHARS - 1).collect();
    short.push('…');
    short
}
