//! What a walk gives: compact while the target waits, a list of blocks afterwards.

use super::arena_top::ArenaTop;
use super::block_scan::MappedBlock;
use super::finding::Finding;
use super::layout::{HEADER_BYTES, Version};
use super::segment::Segment;

/// A block that the program held when it was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBlock {
    /// What malloc returned.
    pub address_avma: u64,
    /// What the block can hold; at least what was asked for, which malloc does not keep.
    pub usable_bytes: u64,
    /// The arena's place in the ring; 0 is the main arena, which also has the mapped blocks.
    pub arena: u32,
    /// Where it lies.
    pub kind: BlockKind,
}

/// Where a block lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// In an arena's heap.
    Heap,
    /// In a mapping of its own.
    Mapped,
}

/// Sums over a rundown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Live blocks.
    pub live_blocks: u64,
    /// What they can hold.
    pub live_bytes: u64,
    /// Of them, with a mapping of their own.
    pub mapped_blocks: u64,
    /// Chunks in fastbins and thread caches, and the caches themselves.
    pub cached_chunks: u64,
    /// Free chunks in other bins.
    pub free_chunks: u64,
    /// Bytes of chunks that are free, cached or not.
    pub free_bytes: u64,
}

/// The heap of a stopped process.
#[derive(Debug)]
pub struct Rundown {
    pub(super) version: Version,
    pub(super) segments: Vec<Segment>,
    /// Sorted: chunks that look used and are not the program's.
    pub(super) cached: Vec<u64>,
    pub(super) mapped: Vec<MappedBlock>,
    /// What of such a block's chunk, to the end of the mapping, the program cannot use.
    pub(super) mapped_overhead_bytes: u64,
    pub(super) arena_count: u32,
    pub(super) findings: Vec<Finding>,
    /// Heaps of arenas, their unused ends, and the arenas' own records.
    pub(super) own: Vec<(u64, u64)>,
    /// Sorted: of `cached` those in fastbins.
    pub(super) fastbins: Vec<u64>,
    pub(super) tops: Vec<ArenaTop>,
}

impl Rundown {
    /// The live blocks: by heaps, in each by address; then those with a mapping of their own.
    pub fn blocks(&self) -> impl Iterator<Item = LiveBlock> {
        let heap = self.segments.iter().flat_map(|segment| {
            let mut cached = self.cached_from(segment.start_avma);
            segment.chunks().filter_map(move |chunk| {
                let is_cached = take_if(&mut cached, chunk.chunk_avma);
                (chunk.looks_used && !is_cached).then_some(LiveBlock {
                    address_avma: chunk.chunk_avma + HEADER_BYTES,
                    // The chunk behind lends its first word.
                    usable_bytes: chunk.size_bytes - 8,
                    arena: segment.arena,
                    kind: BlockKind::Heap,
                })
            })
        });
        // With a larger bound than usual the threads' caches keep these, too.
        let is_live = |block: &&MappedBlock| self.cached.binary_search(&block.chunk_avma).is_err();
        heap.chain(self.mapped.iter().filter(is_live).map(|block| LiveBlock {
            address_avma: block.chunk_avma + HEADER_BYTES,
            usable_bytes: block.size_bytes.saturating_sub(self.mapped_overhead_bytes),
            arena: 0,
            kind: BlockKind::Mapped,
        }))
    }

    /// All memory that is the allocator's: blocks, free chunks, its own records. By address; what
    /// of it could not be made out is left out.
    pub fn memory(&self) -> Vec<(u64, u64)> {
        let whole_segment = |segment: &Segment| {
            let bytes: u64 = segment.chunks().map(|chunk| chunk.size_bytes).sum();
            (segment.start_avma, segment.start_avma + bytes)
        };
        let mapped = self.mapped.iter().map(|block| {
            let start_avma = block.chunk_avma.saturating_sub(block.lead_bytes);
            (start_avma, block.chunk_avma.saturating_add(block.size_bytes))
        });
        let segments = self.segments.iter().map(whole_segment);
        let unknown: Vec<(u64, u64)> = self.findings.iter().filter_map(Finding::unknown_range).collect();
        let all = self.own.iter().copied().chain(segments).chain(mapped);
        without(joined(all.collect()), &joined(unknown))
    }

    /// The arenas' tops, by address.
    pub fn tops(&self) -> &[ArenaTop] {
        &self.tops
    }

    /// Sums over all of it.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for block in self.blocks() {
            totals.live_blocks += 1;
            totals.live_bytes += block.usable_bytes;
            totals.mapped_blocks += u64::from(block.kind == BlockKind::Mapped);
        }
        for segment in &self.segments {
            let mut cached = self.cached_from(segment.start_avma);
            for chunk in segment.chunks() {
                let is_cached = take_if(&mut cached, chunk.chunk_avma);
                totals.cached_chunks += u64::from(is_cached);
                totals.free_chunks += u64::from(!chunk.looks_used);
                totals.free_bytes += if is_cached || !chunk.looks_used { chunk.size_bytes } else { 0 };
            }
        }
        totals
    }

    /// What was wrong or could not be decided; empty for a heap in order.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many arenas the heap has.
    pub fn arena_count(&self) -> u32 {
        self.arena_count
    }

    /// The version of the target's libc.
    pub fn version(&self) -> Version {
        self.version
    }

    pub(super) fn cached_from(&self, start_avma: u64) -> std::iter::Peekable<std::slice::Iter<'_, u64>> {
        let first = self.cached.partition_point(|chunk| *chunk < start_avma);
        self.cached[first..].iter().peekable()
    }
}

/// Ranges by address, those that touch made one.
fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start_avma, end_avma) in ranges {
        match joined.last_mut() {
            Some(last) if start_avma <= last.1 => last.1 = last.1.max(end_avma),
            _ => joined.push((start_avma, end_avma)),
        }
    }
    joined
}

/// What is left of ranges without others, both by address.
fn without(ranges: Vec<(u64, u64)>, others: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for (mut start_avma, end_avma) in ranges {
        for &(other_avma, other_end_avma) in others {
            if other_end_avma <= start_avma || other_avma >= end_avma {
                continue;
            }
            left.push((start_avma, other_avma.max(start_avma)));
            start_avma = other_end_avma.min(end_avma);
        }
        left.push((start_avma, end_avma));
    }
    left.retain(|&(start_avma, end_avma)| start_avma < end_avma);
    left
}

/// Whether `chunk_avma` is in the sorted list; chunks are asked for in order.
fn take_if(cached: &mut std::iter::Peekable<std::slice::Iter<'_, u64>>, chunk_avma: u64) -> bool {
    while cached.next_if(|next| **next < chunk_avma).is_some() {}
    cached.peek() == Some(&&chunk_avma)
}
