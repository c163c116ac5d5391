//! The heap that a runtime's dump shows.

use heapr_v8::Snapshot;

/// Heap of a dump as a snapshot, and facts on the dump that a reader should know.
#[derive(Debug)]
pub struct DumpedHeap {
    /// Snapshot.
    pub snapshot: Snapshot,
    /// Facts in sentences.
    pub notes: Vec<String>,
    /// Offset of the end of a dump that is cut.
    pub cut_at: Option<u64>,
}
