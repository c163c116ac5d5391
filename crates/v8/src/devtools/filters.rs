//! Filters of the summary.

use heapr_graph::reachable;

use crate::devtools::distances::NO_DISTANCE;
use crate::devtools::name_set::NameSet;
use crate::devtools::native_contexts::{ContextOwner, NativeContexts};
use crate::devtools::{Aggregate, DuplicateStrings, Heap};
use crate::node_set::NodeSet;
use crate::{DomState, EdgeKind, NodeKind};

/// Selection of the objects that a summary counts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// Objects with an id above the first number and up to the second. If the numbers are the
    /// [`Heap::max_js_id`] of two snapshots, these were allocated in between.
    AllocatedBetween(u64, u64),
    /// Strings that are in memory more than once.
    DuplicatedStrings,
    /// Objects that would be freed without the contexts of closures.
    RetainedByContexts,
    /// Objects that would be freed without detached DOM nodes.
    RetainedByDetachedNodes,
    /// Objects that would be freed without the variables of DevTools' console.
    RetainedByConsole,
    /// Objects that would be freed without the handlers of DOM events.
    RetainedByEventHandlers,
    /// Objects that belong to a native context.
    NativeContext(ContextOwner),
}

impl Filter {
    /// Returns the nodes that pass the filter.
    pub fn nodes(&self, heap: &Heap) -> NodeSet {
        let snapshot = heap.snapshot();
        let node_count = snapshot.node_count();
        let where_true = |is_wanted: &dyn Fn(u32) -> bool| {
            let mut nodes = NodeSet::new(node_count);
            for node in (0..node_count).filter(|&node| is_wanted(node)) {
                nodes.insert(node);
            }
            nodes
        };
        match *self {
            Self::AllocatedBetween(after, until) => where_true(&|node| {
                let id = snapshot.id(node);
                id > after && id <= until
            }),
            Self::DuplicatedStrings => DuplicateStrings::of(heap).nodes(node_count),
            Self::RetainedByContexts => {
                let names = NameSet::of(snapshot.strings(), |name| {
                    name.strip_prefix(b"system / Context")
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b" / "))
                });
                unreached(heap, |_, _, to| !names.contains(snapshot.name_number(to)))
            }
            Self::RetainedByDetachedNodes => {
                unreached(heap, |_, _, to| snapshot.dom_state(to) != DomState::Detached)
            }
            Self::RetainedByConsole => {
                let names = NameSet::of(snapshot.strings(), |name| name.ends_with(b" / DevTools console"));
                unreached(heap, |edge, from, _| {
                    !(snapshot.kind(from) == NodeKind::SYNTHETIC
                        && snapshot.edge_kind(edge).has_string_name()
                        && names.contains(snapshot.edge_name_number(edge))
                        && !is_numeric_shortcut(heap, edge))
                })
            }
            Self::RetainedByEventHandlers => {
                let handlers = event_handlers(heap);
                unreached(heap, |_, _, to| !handlers.contains(to))
            }
            Self::NativeContext(owner) => {
                let contexts = NativeContexts::of(heap);
                where_true(&|node| contexts.owner(node) == owner)
            }
        }
    }
}

impl Heap {
    /// Returns the summary: one line per class, of all objects or of those that pass `filter`.
    pub fn aggregates(&self, filter: Option<&Filter>) -> Vec<Aggregate> {
        let only = filter.map(|filter| filter.nodes(self));
        self.aggregates_of(only.as_ref())
    }
}

/// Returns the nodes that are reachable in the heap but not along the allowed edges.
fn unreached(heap: &Heap, is_allowed: impl Fn(u32, u32, u32) -> bool) -> NodeSet {
    let snapshot = heap.snapshot();
    let distances = heap.distances();
    let reached = reachable(snapshot.graph(), [snapshot.root()], |edge, from, to| {
        snapshot.edge_kind(edge) != EdgeKind::WEAK && is_allowed(edge, from, to)
    });
    let mut nodes = NodeSet::new(snapshot.node_count());
    for node in 0..snapshot.node_count() {
        if !reached[node as usize] && distances[node as usize] != NO_DISTANCE {
            nodes.insert(node);
        }
    }
    nodes
}

fn is_numeric_shortcut(heap: &Heap, edge: u32) -> bool {
    let snapshot = heap.snapshot();
    snapshot.edge_kind(edge) == EdgeKind::SHORTCUT
        && snapshot.strings().get(snapshot.edge_name_number(edge)).first().is_some_and(u8::is_ascii_digit)
}

/// Returns the functions that DOM events call: the target of a V8EventListener's edge `1`, or the
/// function that the target wraps.
fn event_handlers(heap: &Heap) -> NodeSet {
    let snapshot = heap.snapshot();
    let mut handlers = NodeSet::new(snapshot.node_count());
    let named = |node: u32, name: &str| {
        let mut edges = snapshot.graph().edges(node);
        edges.find(|&edge| snapshot.edge_name(edge) == name).map(|edge| snapshot.graph().target(edge))
    };
    for node in 0..snapshot.node_count() {
        if snapshot.name(node) != b"V8EventListener" {
            continue;
        }
        let Some(callback) = named(node, "1") else { continue };
        let is_function = |node: &u32| named(*node, "code").is_some();
        let wrapped = || snapshot.graph().targets_of(callback).find(is_function);
        let handler = if is_function(&callback) { callback } else { wrapped().unwrap_or(callback) };
        handlers.insert(handler);
    }
    handlers
}
