//! All chunks of a heap, used or not.

use super::live_blocks::Rundown;
use super::segment::{Segment, SegmentChunk};

/// Use of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkUse {
    /// Holds a live block.
    Live,
    /// Lies in a thread's cache, or is such a cache.
    ThreadCache,
    /// Lies in a fastbin of its arena; a trim merges it with its free neighbours.
    Fastbin,
    /// Free, in another bin.
    Free,
}

/// A chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapChunk {
    /// Start of the chunk; its block begins 16 bytes further.
    pub chunk_avma: u64,
    /// Bytes up to the next chunk.
    pub size_bytes: u64,
    /// Use of the chunk.
    pub usage: ChunkUse,
}

/// A run of neighbouring chunks.
#[derive(Debug, Clone, Copy)]
pub struct ChunkRun<'a> {
    rundown: &'a Rundown,
    segment: &'a Segment,
}

impl ChunkRun<'_> {
    /// Address of the first chunk.
    pub fn start_avma(&self) -> u64 {
        self.segment.start_avma
    }

    /// Index of the arena in the ring.
    pub fn arena(&self) -> u32 {
        self.segment.arena
    }

    /// The chunks, each of which begins at the end of the one before.
    pub fn chunks(&self) -> impl Iterator<Item = HeapChunk> {
        let rundown = self.rundown;
        let mut cached = rundown.cached_from(self.segment.start_avma);
        self.segment.chunks().map(move |SegmentChunk { chunk_avma, size_bytes, looks_used }| {
            while cached.next_if(|next| **next < chunk_avma).is_some() {}
            let is_cached = cached.peek() == Some(&&chunk_avma);
            let usage = match (looks_used, is_cached) {
                (false, _) => ChunkUse::Free,
                (true, false) => ChunkUse::Live,
                (true, true) if rundown.fastbins.binary_search(&chunk_avma).is_ok() => ChunkUse::Fastbin,
                (true, true) => ChunkUse::ThreadCache,
            };
            HeapChunk { chunk_avma, size_bytes, usage }
        })
    }
}

impl Rundown {
    /// The chunks in the arenas' heaps, by address. Blocks with mappings of their own are left out.
    pub fn chunk_runs(&self) -> Vec<ChunkRun<'_>> {
        let runs = self.segments.iter().map(|segment| ChunkRun { rundown: self, segment });
        let mut runs: Vec<ChunkRun<'_>> = runs.collect();
        runs.sort_by_key(ChunkRun::start_avma);
        runs
    }
}
