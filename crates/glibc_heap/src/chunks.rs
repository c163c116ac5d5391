//! All chunks of a heap, used or not, and what lies at the arenas' tops.

use super::live_blocks::Rundown;
use super::segment::{Segment, SegmentChunk};

/// What a chunk is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChunkUse {
    /// The program holds its block.
    Live,
    /// It waits in a thread's cache, or is such a cache.
    ThreadCache,
    /// It waits in a fastbin of its arena: a trim makes one of it and its free neighbours.
    Fastbin,
    /// It is free.
    Free,
}

/// A chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapChunk {
    /// Where it begins; its block is 16 bytes behind.
    pub chunk_avma: u64,
    /// To the next one.
    pub size_bytes: u64,
    /// What it is used for.
    pub usage: ChunkUse,
}

/// Neighbouring chunks.
#[derive(Debug, Clone, Copy)]
pub struct ChunkRun<'a> {
    rundown: &'a Rundown,
    segment: &'a Segment,
}

impl ChunkRun<'_> {
    /// The first chunk's address.
    pub fn start_avma(&self) -> u64 {
        self.segment.start_avma
    }

    /// The arena's place in the ring.
    pub fn arena(&self) -> u32 {
        self.segment.arena
    }

    /// The chunks, each where the one before ends.
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
    /// The chunks in the arenas' heaps, by address. Blocks with mappings of their own are not among
    /// them.
    pub fn chunk_runs(&self) -> Vec<ChunkRun<'_>> {
        let runs = self.segments.iter().map(|segment| ChunkRun { rundown: self, segment });
        let mut runs: Vec<ChunkRun<'_>> = runs.collect();
        runs.sort_by_key(ChunkRun::start_avma);
        runs
    }
}
