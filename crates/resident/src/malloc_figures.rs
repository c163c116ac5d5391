//! glibc malloc's own counts, as `mallinfo2` returns them.

use heapr_glibc_heap::{ChunkUse, RegionKind, Regions, Rundown};

/// Counts in bytes of addresses, resident or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MallocFigures {
    /// Bytes that the arenas took from the system (`arena`).
    pub arena_bytes: u64,
    /// Bytes of chunks in use, with those in thread caches (`uordblks`).
    pub used_bytes: u64,
    /// Bytes of free chunks and of the arenas' tops (`fordblks`).
    pub free_bytes: u64,
    /// Bytes of the main arena's top (`keepcost`).
    pub top_bytes: u64,
    /// Bytes of blocks with mappings of their own (`hblkhd`).
    pub mapped_bytes: u64,
}

impl MallocFigures {
    /// Computes the counts of a heap that was walked.
    pub fn of(rundown: &Rundown, regions: &Regions) -> Self {
        let mut free_bytes = 0_u64;
        for run in rundown.chunk_runs() {
            let chunks =
                run.chunks().filter(|chunk| matches!(chunk.usage, ChunkUse::Free | ChunkUse::Fastbin));
            free_bytes = chunks.map(|chunk| chunk.size_bytes).fold(free_bytes, u64::saturating_add);
        }
        let tops = rundown.tops();
        free_bytes = tops.iter().map(|top| top.size_bytes).fold(free_bytes, u64::saturating_add);
        let mapped = regions.regions.iter().filter(|region| region.kind == RegionKind::MappedBlock);
        Self {
            arena_bytes: regions.arena_bytes,
            used_bytes: regions.arena_bytes.saturating_sub(free_bytes),
            free_bytes,
            top_bytes: tops.iter().filter(|top| top.is_main).map(|top| top.size_bytes).sum(),
            mapped_bytes: mapped.map(|region| region.end_avma - region.start_avma).sum(),
        }
    }
}
