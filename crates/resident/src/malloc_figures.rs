//! What glibc's malloc counts of itself, as `mallinfo2` gives it.

use heapr_glibc_heap::{ChunkUse, RegionKind, Regions, Rundown};

/// Bytes of addresses: they need not be resident.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MallocFigures {
    /// What the arenas have taken (`arena`).
    pub arena_bytes: u64,
    /// Chunks in use, those in threads' caches too (`uordblks`).
    pub used_bytes: u64,
    /// Free chunks and the arenas' tops (`fordblks`).
    pub free_bytes: u64,
    /// The main arena's top (`keepcost`).
    pub top_bytes: u64,
    /// Blocks with mappings of their own (`hblkhd`).
    pub mapped_bytes: u64,
}

impl MallocFigures {
    /// Of a heap that was walked.
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
