//! Resident pages of a heap, divided by the use of their bytes.

use std::ops::Range;

use heapr_proc::page_bytes;

use crate::class::Class;
use crate::heap_spans::{HeapSpans, KINDS, Span, SpanKind};
use crate::subject::PageStates;

/// Residency of the pages of a range.
#[derive(Debug)]
pub(crate) struct ResidentPages {
    first_avma: u64,
    /// Size of a page.
    page_bytes: u64,
    /// Number of resident pages before each page; one more entry than pages.
    counts: Vec<u32>,
}

impl ResidentPages {
    /// Reads the page states. `rss_bytes`: resident bytes of the mapping. `None`: the states cannot
    /// be read.
    pub(crate) fn of(range: &Range<u64>, rss_bytes: u64, states: &impl PageStates) -> Option<Self> {
        /// Largest number of pages, of 64 TiB.
        const MOST_PAGES: u64 = 1 << 34;
        let page_bytes = page_bytes();
        let first_avma = range.start / page_bytes * page_bytes;
        let page_count = (range.end - first_avma).div_ceil(page_bytes).min(MOST_PAGES);
        let mut states_of = Vec::new();
        const BATCH_PAGES: u64 = 1 << 16;
        for batch in (0..page_count).step_by(BATCH_PAGES as usize) {
            let count = (page_count - batch).min(BATCH_PAGES) as usize;
            states_of.extend(states.pages(first_avma + batch * page_bytes, count)?);
        }
        let exclusive =
            states_of.iter().filter(|state| state.is_present() && state.is_exclusive()).count() as u64;
        // Pages that are not exclusive may be the page of zeros. As many of them count as resident
        // as are missing to `rss_bytes`.
        let mut missing = (rss_bytes / page_bytes).saturating_sub(exclusive);
        let mut counts = Vec::with_capacity(states_of.len() + 1);
        let mut resident = 0_u32;
        counts.push(0);
        for state in &states_of {
            let is_other = state.is_present() && !state.is_exclusive();
            let is_resident = state.is_present() && (state.is_exclusive() || missing > 0);
            missing -= u64::from(is_other && missing > 0);
            resident += u32::from(is_resident);
            counts.push(resident);
        }
        Some(Self { first_avma, page_bytes, counts })
    }

    /// Number of resident pages from `start_avma` up to `end_avma`, both at the beginnings of
    /// pages.
    fn count(&self, start_avma: u64, end_avma: u64) -> u64 {
        let at = |avma: u64| {
            let page = (avma.saturating_sub(self.first_avma) / self.page_bytes) as usize;
            self.counts.get(page).or(self.counts.last()).copied().unwrap_or(0)
        };
        u64::from(at(end_avma).saturating_sub(at(start_avma)))
    }

    fn is_resident(&self, page_avma: u64) -> bool {
        self.count(page_avma, page_avma + self.page_bytes) == 1
    }
}

/// Resident bytes by use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeapDivision {
    /// Requested bytes of live blocks.
    pub live_bytes: u64,
    /// Bytes of headers, and of live blocks beyond the requested size.
    pub header_bytes: u64,
    /// Whole free pages.
    pub whole_bytes: u64,
    /// Free bytes in pages that other data retains.
    pub pinned_bytes: u64,
    /// Bytes in thread caches.
    pub thread_cache_bytes: u64,
    /// Bytes in unused tops of arenas that a trim leaves.
    pub top_bytes: u64,
    /// Bytes that are not malloc's: memory that the program took with sbrk, and unreadable parts.
    pub foreign_bytes: u64,
    /// Number of live blocks in pages of which at least half is free.
    pub pinning_blocks: u64,
    /// Bytes of these blocks in such pages.
    pub pinning_bytes: u64,
}

/// Observer of live blocks, which knows requested sizes and is told of pinned pages.
pub trait BlockWatcher {
    /// Requested size of a block; `None` if unknown.
    fn asked_bytes(&mut self, block_avma: u64) -> Option<u64>;
    /// Reports a resident page with free bytes that these live blocks retain.
    fn pinned_page(&mut self, free_bytes: u64, block_avmas: &[u64]);
}

/// Observer that knows no sizes and ignores reports.
impl BlockWatcher for () {
    fn asked_bytes(&mut self, _block_avma: u64) -> Option<u64> {
        None
    }

    fn pinned_page(&mut self, _free_bytes: u64, _block_avmas: &[u64]) {}
}

/// Sums for the page to which spans are added.
struct PageSums<'a, W> {
    resident: &'a ResidentPages,
    watcher: &'a mut W,
    page_avma: u64,
    sums: [u64; KINDS],
    blocks: Vec<u64>,
    /// Last block counted as pinning: a block that lies in two pages is counted once.
    last_pinning_avma: u64,
    division: HeapDivision,
}

/// Divides the resident bytes of a region of the heap.
pub(crate) fn divide(
    range: &Range<u64>,
    resident: &ResidentPages,
    spans: &HeapSpans<'_>,
    watcher: &mut impl BlockWatcher,
) -> HeapDivision {
    let page_avma = range.start / page_bytes() * page_bytes();
    let (sums, blocks, division) = ([0; KINDS], Vec::new(), HeapDivision::default());
    let mut pages = PageSums { resident, watcher, page_avma, sums, blocks, last_pinning_avma: 0, division };
    spans.each(range, &mut |span| pages.add(span, range));
    pages.flush();
    let mut division = pages.division;
    let known = division.known_bytes();
    let all = resident.count(resident.first_avma, range.end.next_multiple_of(page_bytes())) * page_bytes();
    division.foreign_bytes = all.saturating_sub(known);
    division
}

impl HeapDivision {
    fn known_bytes(&self) -> u64 {
        self.live_bytes
            + self.header_bytes
            + self.whole_bytes
            + self.pinned_bytes
            + self.thread_cache_bytes
            + self.top_bytes
    }

    /// Adds the bytes of another region.
    pub(crate) fn add(&mut self, other: &Self) {
        self.live_bytes += other.live_bytes;
        self.header_bytes += other.header_bytes;
        self.whole_bytes += other.whole_bytes;
        self.pinned_bytes += other.pinned_bytes;
        self.thread_cache_bytes += other.thread_cache_bytes;
        self.top_bytes += other.top_bytes;
        self.foreign_bytes += other.foreign_bytes;
        self.pinning_blocks += other.pinning_blocks;
        self.pinning_bytes += other.pinning_bytes;
    }

    /// Divides a block with a mapping of its own into its requested bytes and the rest.
    pub(crate) fn of_mapped(resident_bytes: u64, header_bytes: u64) -> Self {
        let header_bytes = header_bytes.min(resident_bytes);
        Self { live_bytes: resident_bytes - header_bytes, header_bytes, ..Self::default() }
    }

    /// Resident bytes by class.
    pub(crate) fn by_class(&self) -> [(Class, u64); 6] {
        [
            (Class::LiveBlocks, self.live_bytes),
            (Class::HeadersRounding, self.header_bytes),
            (Class::FreeWholePages, self.whole_bytes),
            (Class::FreePinned, self.pinned_bytes),
            (Class::CachesTops, self.thread_cache_bytes + self.top_bytes),
            (Class::Unknown, self.foreign_bytes),
        ]
    }
}

impl<W: BlockWatcher> PageSums<'_, W> {
    fn add(&mut self, span: Span, limits: &Range<u64>) {
        let mut start_avma = span.range_avma.start.max(limits.start);
        let end_avma = span.range_avma.end.min(limits.end);
        if span.kind != SpanKind::Live {
            self.bytes(&mut start_avma, end_avma, span.kind, 0);
            return;
        }
        // A block also uses the first word of the next chunk; bytes beyond the requested size are
        // rounding.
        let asked = self.watcher.asked_bytes(span.block_avma);
        let asked_end_avma =
            asked.map_or(end_avma, |bytes| span.block_avma.saturating_add(bytes).min(end_avma));
        self.bytes(&mut start_avma, asked_end_avma, SpanKind::Live, span.block_avma);
        self.bytes(&mut start_avma, end_avma, SpanKind::Header, 0);
    }

    /// Adds the bytes from `start_avma` up to `end_avma`, page by page; whole pages at once.
    fn bytes(&mut self, start_avma: &mut u64, end_avma: u64, kind: SpanKind, block_avma: u64) {
        let page_bytes = self.resident.page_bytes;
        while *start_avma < end_avma {
            let page_avma = *start_avma / page_bytes * page_bytes;
            if page_avma != self.page_avma {
                self.flush();
                self.page_avma = page_avma;
            }
            let whole_end_avma = end_avma / page_bytes * page_bytes;
            if *start_avma == page_avma && whole_end_avma > page_avma + page_bytes {
                let pages = self.resident.count(page_avma, whole_end_avma);
                *self.total(kind) += pages * page_bytes;
                *start_avma = whole_end_avma;
                self.page_avma = whole_end_avma;
                continue;
            }
            let part_end_avma = end_avma.min(page_avma + page_bytes);
            self.sums[kind as usize] += part_end_avma - *start_avma;
            if kind == SpanKind::Live && self.blocks.last() != Some(&block_avma) {
                self.blocks.push(block_avma);
            }
            *start_avma = part_end_avma;
        }
    }

    fn total(&mut self, kind: SpanKind) -> &mut u64 {
        let division = &mut self.division;
        match kind {
            SpanKind::Live => &mut division.live_bytes,
            SpanKind::Header => &mut division.header_bytes,
            SpanKind::Whole => &mut division.whole_bytes,
            SpanKind::Pinned => &mut division.pinned_bytes,
            SpanKind::ThreadCache => &mut division.thread_cache_bytes,
            SpanKind::Top => &mut division.top_bytes,
        }
    }

    /// Closes the page: its sums count if it is resident.
    fn flush(&mut self) {
        let sums = std::mem::take(&mut self.sums);
        if sums != [0; KINDS] && self.resident.is_resident(self.page_avma) {
            const ALL: [SpanKind; KINDS] = [
                SpanKind::Live,
                SpanKind::Header,
                SpanKind::Whole,
                SpanKind::Pinned,
                SpanKind::ThreadCache,
                SpanKind::Top,
            ];
            for kind in ALL {
                *self.total(kind) += sums[kind as usize];
            }
            let free_bytes = sums[SpanKind::Pinned as usize];
            if free_bytes >= self.resident.page_bytes / 2 {
                let new = self.blocks.iter().filter(|block_avma| **block_avma > self.last_pinning_avma);
                self.division.pinning_blocks += new.count() as u64;
                self.last_pinning_avma = self.blocks.last().copied().unwrap_or(0).max(self.last_pinning_avma);
                self.division.pinning_bytes += sums[SpanKind::Live as usize];
            }
            if free_bytes > 0 {
                self.watcher.pinned_page(free_bytes, &self.blocks);
            }
        }
        self.blocks.clear();
    }
}
