//! Object sizes that can be compared between two snapshots.
//!
//! V8's internal objects (a property store, the data of a pattern) count for their owner while they
//! have a single one. That can change without the program: a cache of the engine drops its
//! reference, and the owner seems to grow. For nodes that both snapshots have, bytes therefore
//! count where V8 reported them.

use super::super::heap_view::HeapView;
use super::super::matching::NOT_THERE;
use crate::node_set::NodeSet;

#[derive(Debug)]
pub(super) struct OwnBytes {
    bytes: Vec<u64>,
    /// Internal objects whose owners count.
    inner: NodeSet,
}

impl OwnBytes {
    /// Corrects the sizes of `heap`. `other[node]` is the node in the other snapshot or
    /// [`NOT_THERE`]; `counts` selects the owners whose bytes count.
    pub(super) fn of<H: HeapView>(heap: &H, other: &[u32], counts: impl Fn(u32) -> bool) -> Self {
        let node_count = heap.graph().node_count();
        let mut bytes: Vec<u64> = (0..node_count).map(|node| heap.self_bytes(node)).collect();
        let mut inner = NodeSet::new(node_count);
        for moved in heap.moved_bytes() {
            if other[moved.node as usize] != NOT_THERE && counts(moved.owner) {
                inner.insert(moved.node);
                bytes[moved.node as usize] += moved.bytes;
                let owner = &mut bytes[moved.owner as usize];
                *owner = owner.saturating_sub(moved.bytes);
            }
        }
        Self { bytes, inner }
    }

    pub(super) fn bytes(&self, node: u32) -> u64 {
        self.bytes[node as usize]
    }

    /// Whether a node counts because its owner does.
    pub(super) fn is_inner(&self, node: u32) -> bool {
        self.inner.contains(node)
    }
}
