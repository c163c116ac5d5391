//! Use of each byte of glibc's heap, as spans by address.
//!
//! ```text
//! | size | live block        | size | free ........................................ | size | live
//!   hdr    live                hdr    pinned | page | page | page | pinned
//!                                              what malloc_trim gives back
//! ```

use std::ops::Range;

use heapr_glibc_heap::{ArenaTop, ChunkRun, ChunkUse, HeapChunk, Region, RegionKind, Rundown};
use heapr_proc::page_bytes;

/// Use of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// A live block.
    Live,
    /// Header of a chunk.
    Header,
    /// Whole pages of free chunks, which `malloc_trim` returns.
    Whole,
    /// Free bytes in pages that other data retains.
    Pinned,
    /// A chunk in a thread cache.
    ThreadCache,
    /// Unused top of an arena that a trim leaves.
    Top,
}

/// Number of kinds.
pub(crate) const KINDS: usize = 6;

/// Neighbouring bytes of one use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    /// Address range.
    pub(crate) range_avma: Range<u64>,
    /// Use.
    pub(crate) kind: SpanKind,
    /// Address of the live block; 0 for other uses.
    pub(crate) block_avma: u64,
}

/// Size of a chunk's size field; the block fills the rest of the chunk.
const SIZE_FIELD_BYTES: u64 = 8;
/// Bytes at the start of a free chunk that malloc writes and a trim retains.
const FREE_CHUNK_BYTES: u64 = 48;
/// Least bytes of the main arena's top that a trim retains.
const TOP_KEPT_BYTES: u64 = 33;

/// Lists the spans of a heap by address, one run of chunks after the other.
#[derive(Debug)]
pub(crate) struct HeapSpans<'a> {
    rundown: &'a Rundown,
    /// End of the heap by brk: only a top that ends there can be returned.
    brk_end_avma: u64,
}

impl<'a> HeapSpans<'a> {
    /// Combines a rundown and the regions that were found with it.
    pub(crate) fn new(rundown: &'a Rundown, regions: &[Region]) -> Self {
        let brk = regions.iter().filter(|region| region.kind == RegionKind::Brk);
        Self { rundown, brk_end_avma: brk.map(|region| region.end_avma).max().unwrap_or(0) }
    }

    /// Calls `each` with every span of `range_avma`, in order.
    pub(crate) fn each(&self, range_avma: &Range<u64>, each: &mut impl FnMut(Span)) {
        let is_inside = |avma: u64| range_avma.contains(&avma);
        let tops = self.rundown.tops();
        let mut done = Vec::new();
        for run in self.rundown.chunk_runs().iter().filter(|run| is_inside(run.start_avma())) {
            done.extend(self.chunks(run, each));
        }
        // A top without chunks before it, as in a new heap.
        for top in tops.iter().filter(|top| is_inside(top.start_avma) && !done.contains(&top.start_avma)) {
            self.top(top, top.start_avma, each);
        }
    }

    /// Lists the spans of a run of chunks. Returns the start of the arena's top, if it follows the
    /// run.
    fn chunks(&self, run: &ChunkRun<'_>, each: &mut impl FnMut(Span)) -> Option<u64> {
        // Start of the free neighbours, which a trim merges.
        let mut free_avma: Option<u64> = None;
        let mut end_avma = run.start_avma();
        for HeapChunk { chunk_avma, size_bytes, usage } in run.chunks() {
            end_avma = chunk_avma + size_bytes;
            if matches!(usage, ChunkUse::Free | ChunkUse::Fastbin) {
                free_avma.get_or_insert(chunk_avma);
                continue;
            }
            if let Some(free_avma) = free_avma.take() {
                free(free_avma..chunk_avma, each);
            }
            let range_avma = chunk_avma..end_avma;
            if usage == ChunkUse::ThreadCache {
                each(Span { range_avma, kind: SpanKind::ThreadCache, block_avma: 0 });
                continue;
            }
            // The block begins behind the size field and extends over the first word of the next
            // chunk.
            let block_avma = chunk_avma + 2 * SIZE_FIELD_BYTES;
            let header = chunk_avma..chunk_avma + SIZE_FIELD_BYTES;
            each(Span { range_avma: header, kind: SpanKind::Header, block_avma: 0 });
            let block = chunk_avma + SIZE_FIELD_BYTES..end_avma;
            each(Span { range_avma: block, kind: SpanKind::Live, block_avma });
        }
        let top = self.rundown.tops().iter().find(|top| top.start_avma == end_avma);
        match (top, free_avma) {
            // Fastbin chunks before the top become part of it.
            (Some(top), free_avma) => self.top(top, free_avma.unwrap_or(end_avma), each),
            (None, Some(free_avma)) => free(free_avma..end_avma, each),
            (None, None) => {}
        }
        top.map(|top| top.start_avma)
    }

    /// Lists a top that begins at `start_avma`, free neighbours included.
    fn top(&self, top: &ArenaTop, start_avma: u64, each: &mut impl FnMut(Span)) {
        let end_avma = top.start_avma.saturating_add(top.size_bytes);
        let mut kept_end_avma = end_avma;
        if top.is_main && end_avma == self.brk_end_avma {
            let given_bytes =
                (end_avma - start_avma).saturating_sub(TOP_KEPT_BYTES) / page_bytes() * page_bytes();
            kept_end_avma = end_avma - given_bytes;
        }
        each(Span { range_avma: start_avma..kept_end_avma, kind: SpanKind::Top, block_avma: 0 });
        each(Span { range_avma: kept_end_avma..end_avma, kind: SpanKind::Whole, block_avma: 0 });
    }
}

/// Lists a free chunk: the whole pages behind malloc's links, and the rest.
fn free(range_avma: Range<u64>, each: &mut impl FnMut(Span)) {
    let whole_avma = (range_avma.start + FREE_CHUNK_BYTES).next_multiple_of(page_bytes());
    let whole_end_avma = range_avma.end / page_bytes() * page_bytes();
    let (first, last) = if whole_avma < whole_end_avma {
        (whole_avma, whole_end_avma)
    } else {
        (range_avma.end, range_avma.end)
    };
    for (range_avma, kind) in [
        (range_avma.start..first, SpanKind::Pinned),
        (first..last, SpanKind::Whole),
        (last..range_avma.end, SpanKind::Pinned),
    ] {
        if !range_avma.is_empty() {
            each(Span { range_avma, kind, block_avma: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_chunk_keeps_the_page_in_which_malloc_has_written() {
        let mut spans = Vec::new();
        free(4096 - 48..4096 * 3 + 100, &mut |span| spans.push((span.range_avma, span.kind)));
        let expected = [
            (4048..4096, SpanKind::Pinned),
            (4096..12288, SpanKind::Whole),
            (12288..12388, SpanKind::Pinned),
        ];
        assert_eq!(spans, expected);
        spans.clear();
        free(4096 - 32..4096 * 2 + 8, &mut |span| spans.push((span.range_avma, span.kind)));
        assert_eq!(spans, [(4064..8200, SpanKind::Pinned)]);
    }
}
