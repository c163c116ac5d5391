//! DOM nodes that are out of the document but still referenced.

use super::heap_view::HeapView;

/// Detached node that is not dominated by another detached node: the top of a detached tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detached {
    /// Topmost node of the tree.
    pub node: u32,
    /// Number of detached nodes that would be freed with the node, itself included.
    pub detached_count: u64,
    /// Bytes that would be freed with the node.
    pub retained_bytes: u64,
}

/// Returns the `top` detached trees that retain most.
pub fn detached(heap: &impl HeapView, top: usize) -> Vec<Detached> {
    let dominators = heap.dominators();
    let node_count = heap.graph().node_count() as usize;
    // Topmost detached node at or above each node; `u32::MAX` if no such node exists.
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
