//! Bytes of objects that can be compared between two snapshots.
//!
//! V8's inner objects (a property store, the data of a pattern) count for their owner while they
//! have one alone. That changes without anybody's doing: a cache of the engine lets go of one, and
//! its owner seems to grow. So bytes that were moved from an object that both snapshots have count
//! where V8 said that they are.

use super::super::heap_view::HeapView;
use super::super::matching::NOT_THERE;
use crate::node_set::NodeSet;

#[derive(Debug)]
pub(super) struct OwnBytes {
    bytes: Vec<u64>,
    /// Inner objects of objects that count.
    inner: NodeSet,
}

impl OwnBytes {
    /// `other[node]` is the node in the other snapshot or [`NOT_THERE`]; `counts` says whose bytes
    /// count.
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
