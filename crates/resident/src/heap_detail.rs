//! Contents of glibc's heap.

use std::collections::BTreeMap;

use crate::heap_pages::HeapDivision;

/// Contents of glibc's heap, by use and by arena.
#[derive(Debug, Clone, Default)]
pub struct HeapDetail {
    /// Whole heap.
    pub all: HeapDivision,
    /// By arena, in the order of the ring, without blocks that have mappings of their own.
    pub arenas: BTreeMap<u32, HeapDivision>,
    /// Number of live blocks.
    pub live_blocks: u64,
    /// Number of live blocks with mappings of their own.
    pub mapped_blocks: u64,
    /// Largest number of bytes that were ever live at once; known for a process that was recorded
    /// from its start.
    pub peak_live_bytes: Option<u64>,
    /// Damage of the heap, and parts that could not be decided.
    pub findings: Vec<String>,
}
