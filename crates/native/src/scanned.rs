//! What a scan gives.

use heapr_trace::{EdgeGrade, GraphTexts, RootEdge};

/// The references that a scan has found; edges are numbered by source, as in
/// [`heapr_trace::HeapGraph`].
#[derive(Debug, Default)]
pub struct Scanned {
    /// First edge of each block, and their count.
    pub first_edge: Vec<u32>,
    /// Block that each edge leads to.
    pub targets: Vec<u32>,
    /// Word of its block that each edge stands in.
    pub slots: Vec<u32>,
    /// How sure each edge is.
    pub grades: Vec<EdgeGrade>,
    /// References from outside of blocks.
    pub roots: Vec<RootEdge>,
    /// By block: the number of its type's name plus one; 0: not known.
    pub types: Vec<u32>,
    /// Names of types, as the compiler wrote them.
    pub type_names: Vec<String>,
    /// What blocks begin with, where that is text; empty unless it is to be kept.
    pub texts: GraphTexts,
    /// Bytes that could not be read.
    pub unread_bytes: u64,
    /// Bytes that were looked at.
    pub read_bytes: u64,
}
