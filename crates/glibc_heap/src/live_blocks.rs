//! Result of a walk: compact while the target waits, listed as blocks afterwards.

use heapr_proc::ranges::joined;

use super::arena_top::ArenaTop;
use super::block_scan::MappedBlock;
use super::finding::Finding;
use super::layout::{HEADER_BYTES, Version};
use super::segment::Segment;

/// A block that the program held at the stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBlock {
    /// Address that malloc returned.
    pub address_avma: u64,
    /// Usable size; at least the requested one, which malloc does not store.
    pub usable_bytes: u64,
    /// Index of the arena in the ring; 0 is the main arena, which also owns the mapped blocks.
    pub arena: u32,
    /// Kind of memory that the block lies in.
    pub kind: BlockKind,
}

/// Kind of memory that a block lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// An arena's heap.
    Heap,
    /// A mapping of its own.
    Mapped,
}

/// Sums over a rundown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Number of live blocks.
    pub live_blocks: u64,
    /// Usable bytes of the live blocks.
    pub live_bytes: u64,
    /// Number of live blocks with a mapping of their own.
    pub mapped_blocks: u64,
    /// Number of chunks in fastbins and thread caches, with the caches themselves.
    pub cached_chunks: u64,
    /// Number of free chunks in other bins.
    pub free_chunks: u64,
    /// Bytes of free chunks, cached or not.
    pub free_bytes: u64,
}

/// The heap of a stopped process.
#[derive(Debug)]
pub struct Rundown {
    pub(super) version: Version,
    pub(super) segments: Vec<Segment>,
    /// Chunks that look used but are free or a thread cache, sorted.
    pub(super) cached: Vec<u64>,
    pub(super) mapped: Vec<MappedBlock>,
    /// Bytes of a mapped block's chunk, to the end of the mapping, that the program cannot use.
    pub(super) mapped_overhead_bytes: u64,
    pub(super) arena_count: u32,
    pub(super) findings: Vec<Finding>,
    /// Ranges of arenas' heaps, tops, and records.
    pub(super) own: Vec<(u64, u64)>,
    /// Chunks of `cached` that lie in fastbins, sorted.
    pub(super) fastbins: Vec<u64>,
    pub(super) tops: Vec<ArenaTop>,
}

impl Rundown {
    /// The live blocks: by heap, in each by address; then those with a mapping of their own.
    pub fn blocks(&self) -> impl Iterator<Item = LiveBlock> {
        let heap = self.segments.iter().flat_map(|segment| {
            let mut cached = self.cached_from(segment.start_avma);
            segment.chunks().filter_map(move |chunk| {
                let is_cached = take_if(&mut cached, chunk.chunk_avma);
                (chunk.looks_used && !is_cached).then_some(LiveBlock {
                    address_avma: chunk.chunk_avma + HEADER_BYTES,
                    // A chunk also uses the first word of the chunk behind it.
                    usable_bytes: chunk.size_bytes - 8,
                    arena: segment.arena,
                    kind: BlockKind::Heap,
                })
            })
        });
        // With a raised size limit, thread caches hold mapped blocks, too.
        let is_live = |block: &&MappedBlock| self.cached.binary_search(&block.chunk_avma).is_err();
        heap.chain(self.mapped.iter().filter(is_live).map(|block| LiveBlock {
            address_avma: block.chunk_avma + HEADER_BYTES,
            usable_bytes: block.size_bytes.saturating_sub(self.mapped_overhead_bytes),
            arena: 0,
            kind: BlockKind::Mapped,
        }))
    }

    /// All memory of the allocator: blocks, free chunks, its records; by address. Unknown parts are
    /// left out.
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

    /// Tops of the arenas, by address.
    pub fn tops(&self) -> &[ArenaTop] {
        &self.tops
    }

    /// Sums over the rundown.
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

    /// Damage and undecided parts; empty for a consistent heap.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// Number of arenas.
    pub fn arena_count(&self) -> u32 {
        self.arena_count
    }

    /// Version of the target's libc.
    pub fn version(&self) -> Version {
        self.version
    }

    pub(super) fn cached_from(&self, start_avma: u64) -> std::iter::Peekable<std::slice::Iter<'_, u64>> {
        let first = self.cached.partition_point(|chunk| *chunk < start_avma);
        self.cached[first..].iter().peekable()
    }
}

/// Rest of `ranges` without `others`, both by address.
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

/// Whether `chunk_avma` is in the sorted list; callers pass chunks in ascending order.
fn take_if(cached: &mut std::iter::Peekable<std::slice::Iter<'_, u64>>, chunk_avma: u64) -> bool {
    while cached.next_if(|next| **next < chunk_avma).is_some() {}
    cached.peek() == Some(&&chunk_avma)
}
