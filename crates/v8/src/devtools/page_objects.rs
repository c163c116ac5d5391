//! The objects that belong to the page (or the program), not to the debugger or V8 alone.

use crate::devtools::node_set::NodeSet;
use crate::{EdgeKind, NodeKind, Snapshot};

/// Whether the node stands for something that users made: what V8 calls a user root, below the root.
pub(crate) fn is_user_root(snapshot: &Snapshot, node: u32) -> bool {
    snapshot.kind(node) != NodeKind::SYNTHETIC || is_dom_trees(snapshot, node)
}

fn is_dom_trees(snapshot: &Snapshot, node: u32) -> bool {
    snapshot.kind(node) == NodeKind::SYNTHETIC && snapshot.name(node) == b"(Document DOM trees)"
}

/// Whether the root refers to a user root. Snapshots with exposed internals have none.
pub(crate) fn has_user_roots(snapshot: &Snapshot) -> bool {
    snapshot.graph.targets_of(snapshot.root).iter().any(|&node| is_user_root(snapshot, node))
}

/// All that the root's shortcuts (the global objects) and the document trees lead to over edges that are not weak.
pub(crate) fn page_objects(snapshot: &Snapshot) -> NodeSet {
    let graph = &snapshot.graph;
    let mut found = NodeSet::new(graph.node_count());
    let mut stack = Vec::new();
    for edge in graph.edges(snapshot.root) {
        let target = graph.target(edge);
        let is_seed = match snapshot.edge_kind(edge) {
            EdgeKind::SHORTCUT => true,
            EdgeKind::ELEMENT => is_dom_trees(snapshot, target),
            _ => false,
        };
        if is_seed && found.insert(target) {
            stack.push(target);
        }
    }
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
