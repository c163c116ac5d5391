//! DOM nodes that no document shows and something still holds.

use super::heap_view::HeapView;

/// A detached node that no other detached node dominates: the top of a detached tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detached {
    /// The node.
    pub node: u32,
    /// How many detached nodes would be freed with it, itself included.
    pub detached_count: u64,
    /// What would be freed with it.
    pub retained_bytes: u64,
}

/// The `top` detached trees by what they retain.
pub fn detached(heap: &impl HeapView, top: usize) -> Vec<Detached> {
    let dominators = heap.dominators();
    let node_count = heap.graph().node_count() as usize;
    // The topmost detached node at or above each node, if there is one.
    let mut tree = vec![u32::MAX; node_count];
    let mut counts = vec![0u64; node_count];
    for &node in dominators.order() {
        let above = if node == dominators.root() { u32::MAX } else { tree[dominators.idom(node) as usize] };
        let is_detached = heap.is_detached(node);
        tree[node as usize] = if above == u32::MAX && is_detached { node } else { above };
        if is_detached {
            counts[tree[node as usize] as usize] += 1;
        }
    }
    let mut found: Vec<Detached> = (0..node_count as u32)
        .filter(|&node| tree[node as usize] == node)
        .map(|node| Detached {
            node,
            detached_count: counts[node as usize],
            retained_bytes: heap.retained_bytes(node),
        })
        .collect();
    found.sort_by_key(|found| (std::cmp::Reverse((found.retained_bytes, found.detached_count)), found.node));
    found.truncate(top);
    found
}
