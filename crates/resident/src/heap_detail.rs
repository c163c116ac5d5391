//! What was found in glibc's heap.

use std::collections::BTreeMap;

use crate::heap_pages::HeapDivision;

/// What was found in the heap.
#[derive(Debug, Clone, Default)]
pub struct HeapDetail {
    /// All of it.
    pub all: HeapDivision,
    /// By arena, in the order of the ring; blocks with mappings of their own are not among it.
    pub arenas: BTreeMap<u32, HeapDivision>,
    /// Live blocks, and how many of them have mappings of their own.
    pub live_blocks: u64,
    /// See above.
    pub mapped_blocks: u64,
    /// The most that was ever live at once, of a process that was recorded from its start.
    pub peak_live_bytes: Option<u64>,
    /// What was wrong with the heap, or could not be decided.
    pub findings: Vec<String>,
}
