//! Objects that belong to the page or the program, rather than to the debugger or V8 alone.

use crate::devtools::name_set::NameSet;
use crate::node_set::NodeSet;
use crate::{EdgeKind, NodeKind, Snapshot};

/// Whether a child of the root stands for objects that users made, which V8 calls a user root.
pub(crate) fn is_user_root(snapshot: &Snapshot, node: u32) -> bool {
    snapshot.kind(node) != NodeKind::SYNTHETIC || is_dom_trees(snapshot, node)
}

fn is_dom_trees(snapshot: &Snapshot, node: u32) -> bool {
    snapshot.kind(node) == NodeKind::SYNTHETIC && snapshot.name(node) == b"(Document DOM trees)"
}

/// Whether the root refers to a user root. Snapshots with exposed internals have no user roots.
pub(crate) fn has_user_roots(snapshot: &Snapshot) -> bool {
    snapshot.graph.targets_of(snapshot.root).any(|node| is_user_root(snapshot, node))
}

/// Returns all nodes that the root's shortcuts (the global objects) and the document trees lead to
/// over edges that are not weak.
pub(crate) fn page_objects(snapshot: &Snapshot) -> NodeSet {
    let graph = &snapshot.graph;
    let seeds = graph.edges(snapshot.root).filter(|&edge| match snapshot.edge_kind(edge) {
        EdgeKind::SHORTCUT => true,
        EdgeKind::ELEMENT => is_dom_trees(snapshot, graph.target(edge)),
        _ => false,
    });
    led_to(snapshot, seeds.map(|edge| graph.target(edge)))
}

/// Returns the contexts of programs that a root holds by edges that are not weak. With exposed
/// internals, shortcuts do not lead to them.
pub(crate) fn contexts_held_by_roots(snapshot: &Snapshot) -> NodeSet {
    let graph = &snapshot.graph;
    let contexts = NameSet::of(&snapshot.strings, |text| text == b"system / NativeContext");
    let mut found = NodeSet::new(snapshot.node_count());
    for root in (0..snapshot.node_count()).filter(|&node| snapshot.kind(node) == NodeKind::SYNTHETIC) {
        for edge in graph.edges(root).filter(|&edge| snapshot.edge_kind(edge) != EdgeKind::WEAK) {
            let target = graph.target(edge);
            if contexts.contains(snapshot.name_number(target)) {
                found.insert(target);
            }
        }
    }
    found
}

/// Returns all nodes that `seeds` lead to over edges that are not weak, the seeds included.
pub(crate) fn led_to(snapshot: &Snapshot, seeds: impl IntoIterator<Item = u32>) -> NodeSet {
    let graph = &snapshot.graph;
    let mut found = NodeSet::new(graph.node_count());
    let mut stack: Vec<u32> = seeds.into_iter().filter(|&seed| found.insert(seed)).collect();
    while let Some(node) = stack.pop() {
        for edge in graph.edges(node) {
            let target = graph.target(edge);
            if !found.contains(target) && snapshot.edge_kind(edge) != EdgeKind::WEAK {
                found.insert(target);
                stack.push(target);
            }
        }
    }
    found
}
