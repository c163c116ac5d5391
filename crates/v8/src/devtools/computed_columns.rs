//! Results that a heap would compute, read from an index.

use heapr_graph::{Dominators, Graph, Retainers};

use crate::devtools::classes::Classes;
use crate::devtools::shallow_sizes::MovedBytes;

/// Columns as [`crate::devtools::Heap`] computes them; `None` if one cannot be read.
pub(crate) trait ComputedColumns: std::fmt::Debug + Send + Sync {
    /// Distance of each node.
    fn distances(&self) -> Option<Vec<i32>>;
    /// Classes, and the class of each node.
    fn classes(&self) -> Option<Classes>;
    /// Immediate dominators.
    fn dominators(&self) -> Option<Dominators>;
    /// Bytes that would be freed with each node.
    fn retained(&self) -> Option<Vec<u64>>;
    /// Bytes of V8's internal objects that count for their owners.
    fn moved_bytes(&self) -> Option<Vec<MovedBytes>>;
    /// Edges by target.
    fn retainers(&self, graph: &Graph) -> Option<Retainers>;
}
