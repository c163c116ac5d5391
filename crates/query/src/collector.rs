//! Adds up the allocations that a replay shows: each block once, when it ends or when the replay does.
//!
//! The peak. The peak moment is that of all chosen blocks (process, heap, thread, range); a block counts at it if it
//! passes the other filters too, of which lifetime, temporary and type are only known when it ends. So a block is
//! added to its row's peak when it ends, if it was alive at the greatest peak so far; each new peak has a new number
//! (epoch), which voids what rows hold of older ones. Exact, and O(1) per event.

use std::collections::HashSet;

use heapr_trace::{Block, HeapId, ProcessIndex, Totals};

use crate::choice::Choice;
use crate::filter::{AllocationType, Filter, Span};
use crate::histogram::{HistogramCounter, HistogramOf};
use crate::row_table::{RowKey, RowTable, Rows};

/// What the collector counts of the blocks that the replay shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Blocks born in the replay, freed or not.
    Born,
    /// Blocks of this type, against the range.
    Type(AllocationType),
    /// Blocks live at the end.
    Live,
}

/// The end of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Death {
    pub(crate) free_ns: u64,
    pub(crate) is_temporary: bool,
}

/// Live bytes and their greatest sum.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    live_bytes: u64,
    live_count: u64,
    peak_bytes: u64,
    peak_count: u64,
    peak_time_ns: u64,
}

impl Level {
    /// Adds a block; tells whether that made a new peak.
    fn grow(&mut self, size_bytes: u64, time_ns: u64) -> bool {
        self.live_bytes = self.live_bytes.saturating_add(size_bytes);
        self.live_count += 1;
        let is_peak = self.live_bytes > self.peak_bytes;
        if is_peak {
            self.peak_bytes = self.live_bytes;
            self.peak_count = self.live_count;
            self.peak_time_ns = time_ns;
        }
        is_peak
    }

    fn shrink(&mut self, size_bytes: u64) {
        self.live_bytes = self.live_bytes.saturating_sub(size_bytes);
        self.live_count = self.live_count.saturating_sub(1);
    }
}

/// Address of a block.
type BlockKey = (ProcessIndex, HeapId, u64);

/// See the module.
pub(crate) struct Collector<'a> {
    choice: &'a Choice,
    counted: Counted,
    /// Events that the replay shows and that count; what comes before only builds the live set.
    range: Span,
    lifetime: Option<Span>,
    size: Option<Span>,
    is_temporary_only: bool,
    /// By stack: whether the required frames are there; `None`: no matter.
    has_required: Option<&'a [bool]>,
    rows: RowTable,
    histograms: Vec<HistogramCounter>,
    level: Level,
    heap_levels: Vec<(ProcessIndex, HeapId, Level)>,
    /// Number of the last peak; 0: there was none.
    epoch: u32,
    /// Blocks born after the last peak with the same time stamp: not alive at it although their time says so.
    late_births: HashSet<BlockKey>,
    pub(crate) unmatched_frees: u64,
    pub(crate) inherited_frees: u64,
    pub(crate) implied_frees: u64,
    pub(crate) failed_count: u64,
}

/// What a collector found.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) rows: Rows,
    pub(crate) totals: Totals,
    pub(crate) by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
    pub(crate) histograms: Vec<HistogramCounter>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        choice: &'a Choice,
        filter: &Filter,
        counted: Counted,
        range: Span,
        has_required: Option<&'a [bool]>,
        is_by_thread: bool,
        histograms: &[HistogramOf],
    ) -> Self {
        Self {
            choice,
            counted,
            range,
            lifetime: filter.lifetime,
            size: filter.size,
            is_temporary_only: filter.is_temporary_only,
            has_required,
            rows: RowTable::new(is_by_thread),
            histograms: histograms.iter().map(|&of| HistogramCounter::new(of)).collect(),
            level: Level::default(),
            heap_levels: Vec::new(),
            epoch: 0,
            late_births: HashSet::new(),
            unmatched_frees: 0,
            inherited_frees: 0,
            implied_frees: 0,
            failed_count: 0,
        }
    }

    /// A block that was live before the replay's first event, or at the start of the range if blocks born before it
    /// are what counts.
    pub(crate) fn was_live(&mut self, block: &Block) {
        self.raise(block, self.range.from);
    }

    /// A block's birth.
    pub(crate) fn born(&mut self, block: &Block) {
        if self.counts_births_of(block.alloc_ns) {
            self.raise(block, block.alloc_ns);
        }
    }

    fn counts_births_of(&self, alloc_ns: u64) -> bool {
        match self.counted {
            Counted::Born | Counted::Live => true,
            Counted::Type(kind) => kind.is_allocated_inside() == self.range.contains(alloc_ns),
        }
    }

    fn raise(&mut self, block: &Block, time_ns: u64) {
        if !self.choice.has(block) {
            return;
        }
        if self.level.grow(block.size_bytes, time_ns) {
            self.epoch = self.epoch.saturating_add(1);
            self.late_births.clear();
        } else if time_ns == self.level.peak_time_ns && self.epoch > 0 {
            self.late_births.insert(block_key(block));
        }
        self.heap_level(block).grow(block.size_bytes, time_ns);
    }

    fn heap_level(&mut self, block: &Block) -> &mut Level {
        let key = (block.process, block.heap);
        // A handful of processes and heaps: looking is quicker than hashing; the last one is the likeliest.
        let found = self.heap_levels.iter().rposition(|&(process, heap, _)| (process, heap) == key);
        let at = found.unwrap_or_else(|| {
            self.heap_levels.push((block.process, block.heap, Level::default()));
            self.heap_levels.len() - 1
        });
        &mut self.heap_levels[at].2
    }

    /// A block's end inside the replay.
    pub(crate) fn died(&mut self, block: &Block, death: Death) {
        if !self.choice.has(block) || !self.counts_births_of(block.alloc_ns) {
            return;
        }
        let is_counted = match self.counted {
            Counted::Born => true,
            Counted::Type(kind) => kind.is_freed_inside() && self.range.contains(death.free_ns),
            Counted::Live => false,
        };
        if is_counted {
            self.count(block, Some(death), self.range.to);
        }
        self.level.shrink(block.size_bytes);
        let size_bytes = block.size_bytes;
        self.heap_level(block).shrink(size_bytes);
    }

    /// A block that is live when the replay ends, at `end_ns`.
    pub(crate) fn is_live_at_end(&mut self, block: &Block, end_ns: u64) {
        let is_counted = match self.counted {
            Counted::Born | Counted::Live => true,
            Counted::Type(kind) => !kind.is_freed_inside() && self.counts_births_of(block.alloc_ns),
        };
        if is_counted && self.choice.has(block) {
            self.count(block, None, end_ns);
        }
    }

    fn count(&mut self, block: &Block, death: Option<Death>, end_ns: u64) {
        let is_temporary = death.is_some_and(|death| death.is_temporary);
        let free_ns = death.map_or(end_ns, |death| death.free_ns);
        let lifetime_ns = free_ns.saturating_sub(block.alloc_ns);
        let passes = self.size.is_none_or(|size| size.contains(block.size_bytes))
            && self.lifetime.is_none_or(|lifetime| lifetime.contains(lifetime_ns))
            && (is_temporary || !self.is_temporary_only)
            && self.has_required.is_none_or(|has| has.get(block.stack.0 as usize).copied().unwrap_or(false));
        if !passes {
            return;
        }
        let row = self.rows.row(RowKey {
            stack: block.stack,
            process: block.process,
            heap: block.heap,
            thread: block.thread,
        });
        if self.counted == Counted::Live || self.was_live_at_peak(block) {
            self.rows.add_peak(row, self.epoch, block.size_bytes);
        }
        let totals = self.rows.totals_mut(row);
        totals.total_count += 1;
        totals.total_bytes = totals.total_bytes.saturating_add(block.size_bytes);
        totals.realloc_count += u64::from(block.is_realloc);
        totals.temporary_count += u64::from(is_temporary);
        if death.is_none() {
            totals.outstanding_count += 1;
            totals.outstanding_bytes = totals.outstanding_bytes.saturating_add(block.size_bytes);
        }
        for histogram in &mut self.histograms {
            histogram.add(block.size_bytes, lifetime_ns, death.is_none());
        }
    }

    /// Whether a block that ends now was alive at the last peak.
    fn was_live_at_peak(&self, block: &Block) -> bool {
        if self.epoch == 0 {
            return false;
        }
        let peak_ns = self.level.peak_time_ns;
        block.alloc_ns < peak_ns
            || (block.alloc_ns == peak_ns && !self.late_births.contains(&block_key(block)))
    }

    /// Bytes and time of the greatest peak so far.
    pub(crate) fn peak(&self) -> (u64, u64) {
        (self.level.peak_bytes, self.level.peak_time_ns)
    }

    /// All amounts. The heaps' own peaks are kept only if nothing but the choice decided what is counted.
    pub(crate) fn finish(self) -> Collected {
        let is_whole = self.size.is_none()
            && self.lifetime.is_none()
            && !self.is_temporary_only
            && self.has_required.is_none()
            && self.counted == Counted::Born;
        let peak_time_ns = self.level.peak_time_ns;
        let rows = self.rows.finish(self.epoch);
        let mut collected = Collected {
            totals: sum_of(&rows, peak_time_ns),
            by_heap: sums_by_heap(&rows, peak_time_ns),
            rows,
            histograms: self.histograms,
        };
        collected.totals.unmatched_frees = self.unmatched_frees;
        collected.totals.inherited_frees = self.inherited_frees;
        collected.totals.implied_frees = self.implied_frees;
        collected.totals.failed_count = self.failed_count;
        if is_whole {
            for (process, heap, totals) in &mut collected.by_heap {
                if let Some((_, _, level)) = self
                    .heap_levels
                    .iter()
                    .find(|(of_process, of_heap, _)| of_process == process && of_heap == heap)
                {
                    totals.peak_bytes = level.peak_bytes;
                    totals.peak_count = level.peak_count;
                    totals.peak_time_ns = level.peak_time_ns;
                }
            }
        }
        collected
    }
}

impl std::fmt::Debug for Collector<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Collector")
            .field("counted", &self.counted)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}

fn block_key(block: &Block) -> BlockKey {
    (block.process, block.heap, block.address_avma)
}

/// Sum of all rows.
pub(crate) fn sum_of(rows: &Rows, peak_time_ns: u64) -> Totals {
    let mut sum = Totals { peak_time_ns, ..Totals::default() };
    for row in &rows.totals {
        add_row(&mut sum, row);
    }
    sum
}

/// Sums by process and heap, in that order.
pub(crate) fn sums_by_heap(rows: &Rows, peak_time_ns: u64) -> Vec<(ProcessIndex, HeapId, Totals)> {
    let mut sums: Vec<(ProcessIndex, HeapId, Totals)> = Vec::new();
    let mut numbers = hashbrown::HashMap::new();
    for row in &rows.totals {
        let number = *numbers.entry((row.process, row.heap)).or_insert_with(|| {
            sums.push((row.process, row.heap, Totals { peak_time_ns, ..Totals::default() }));
            sums.len() - 1
        });
        add_row(&mut sums[number].2, row);
    }
    sums.sort_unstable_by_key(|&(process, heap, _)| (process, heap));
    sums
}

fn add_row(sum: &mut Totals, row: &heapr_trace::StackTotals) {
    sum.alloc_count += row.total_count;
    sum.alloc_bytes = sum.alloc_bytes.saturating_add(row.total_bytes);
    sum.free_count += row.total_count.saturating_sub(row.outstanding_count);
    sum.realloc_count += row.realloc_count;
    sum.temporary_count += row.temporary_count;
    sum.outstanding_count += row.outstanding_count;
    sum.outstanding_bytes = sum.outstanding_bytes.saturating_add(row.outstanding_bytes);
    sum.peak_count += row.peak_count;
    sum.peak_bytes = sum.peak_bytes.saturating_add(row.peak_bytes);
}
