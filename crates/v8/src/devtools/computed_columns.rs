//! What a heap would compute, where it can be read: an index has it.

use heapr_graph::{Dominators, Graph, Retainers};

use crate::devtools::classes::Classes;
use crate::devtools::shallow_sizes::MovedBytes;

/// Each column as [`crate::devtools::Heap`] computes it; nothing if it cannot be read.
pub(crate) trait ComputedColumns: std::fmt::Debug + Send + Sync {
    /// The distance of each node.
    fn distances(&self) -> Option<Vec<i32>>;
    /// The classes, and the class of each node.
    fn classes(&self) -> Option<Classes>;
    /// The immediate dominators.
    fn dominators(&self) -> Option<Dominators>;
    /// Bytes that would be freed with each node.
    fn retained(&self) -> Option<Vec<u64>>;
    /// The bytes of inner objects that count for their owners.
    fn moved_bytes(&self) -> Option<Vec<MovedBytes>>;
    /// The edges by target.
    fn retainers(&self, graph: &Graph) -> Option<Retainers>;
}
