//! Result of a scan.

use heapr_trace::{EdgeGrade, GraphTexts, RootEdge, SlicedBlock};

/// References that a scan found; edges are numbered by source, as in [`heapr_trace::HeapGraph`].
#[derive(Debug, Default)]
pub struct Scanned {
    /// First edge of each block, and the count of edges at the end.
    pub first_edge: Vec<u32>,
    /// Block that each edge leads to.
    pub targets: Vec<u32>,
    /// Word of its block that each edge stands in.
    pub slots: Vec<u32>,
    /// Grade of each edge.
    pub grades: Vec<EdgeGrade>,
    /// References from roots.
    pub roots: Vec<RootEdge>,
    /// Number of each block's type name plus one; 0: unknown.
    pub types: Vec<u32>,
    /// Names of types, as the compiler wrote them.
    pub type_names: Vec<String>,
    /// Text at the start of blocks; empty for [`Texts::LeftOut`](crate::Texts::LeftOut).
    pub texts: GraphTexts,
    /// Large blocks of which only slices seem to be used.
    pub sliced: Vec<SlicedBlock>,
    /// Bytes that could not be read.
    pub unread_bytes: u64,
    /// Bytes that were scanned.
    pub read_bytes: u64,
}
