//! Sums the allocations of a replay: each block once, when it ends or when the replay ends.
//!
//! The peak moment is that of all chosen blocks (process, heap, thread, range, size). A block
//! counts at the peak if it passes the other filters, too. Of these, lifetime, temporary and type
//! are known only when the block ends. So an ending block is added to its row's peak if it was
//! alive at the greatest peak so far. Each new peak has a new number (epoch), which voids what rows
//! hold of older peaks. The result is exact, at O(1) per event.

use std::collections::{BTreeMap, HashSet};

use heapr_trace::{
    Amounts, Block, Event, HeapId, LiveVariances, ProcessIndex, Sampling, StackTotals, Totals, Weight,
};

use crate::choice::Choice;
use crate::filter::{AllocationType, Filter, Span};
use crate::histogram::{HistogramCounter, HistogramOf};
use crate::row_table::{RowKey, RowTable, Rows};

/// Selection of the blocks that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Blocks born in the replay, freed or not.
    Born,
    /// Blocks of this type, relative to the range.
    Type(AllocationType),
    /// Blocks live at the end.
    Live,
}

/// The end of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Death {
    pub(crate) free_ns: u64,
    pub(crate) is_temporary: bool,
    /// True if the program's free was not observed.
    pub(crate) is_implied: bool,
}

/// Calls that belong to no counted block, and counted blocks that ended without a free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Number of frees of blocks that were never seen.
    pub unmatched: u64,
    /// Number of frees of blocks that a process inherited from its parent.
    pub inherited: u64,
    /// Number of blocks that ended without a free.
    pub implied: u64,
    /// Number of calls that failed.
    pub failed: u64,
}

/// Live bytes and blocks, and their values at the peak.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    live_bytes: u64,
    live_count: u64,
    live_variances: LiveVariances,
    peak_bytes: u64,
    peak_count: u64,
    peak_variances: LiveVariances,
    peak_time_ns: u64,
}

fn variances(weight: Weight) -> LiveVariances {
    LiveVariances { bytes_kib2: weight.bytes_variance_kib2, count: weight.count_variance }
}

impl Level {
    /// Adds a block; returns whether this made a new peak.
    fn grow(&mut self, weight: Weight, time_ns: u64) -> bool {
        self.live_bytes = self.live_bytes.saturating_add(weight.bytes);
        self.live_count = self.live_count.saturating_add(weight.count);
        self.live_variances.add(variances(weight));
        let is_peak = self.live_bytes > self.peak_bytes;
        if is_peak {
            self.peak_variances = self.live_variances;
            self.peak_bytes = self.live_bytes;
            self.peak_count = self.live_count;
            self.peak_time_ns = time_ns;
        }
        is_peak
    }

    fn shrink(&mut self, weight: Weight) {
        self.live_bytes = self.live_bytes.saturating_sub(weight.bytes);
        self.live_count = self.live_count.saturating_sub(weight.count);
        self.live_variances.remove(variances(weight));
    }
}

/// Identity of a live block.
type BlockKey = (ProcessIndex, HeapId, u64);

/// Sums the blocks of a replay by stack.
pub(crate) struct Collector<'a> {
    choice: &'a Choice,
    /// Sampling, from which the weights of blocks are computed; `None`: each block counts as
    /// itself.
    sampling: Option<&'a Sampling>,
    counted: Counted,
    /// Range of the events that count; earlier events only build the live set.
    range: Span,
    /// End of the lifetime of blocks that are not freed.
    end_ns: u64,
    lifetime: Option<Span>,
    is_temporary_only: bool,
    /// Whether each stack has the required frames; `None` if frames do not matter.
    has_required: Option<&'a [bool]>,
    rows: RowTable,
    histograms: Vec<HistogramCounter>,
    level: Level,
    heap_levels: Vec<(ProcessIndex, HeapId, Level)>,
    /// Index in `heap_levels` of each heap; a trace may have thousands of processes.
    heap_places: hashbrown::HashMap<(ProcessIndex, HeapId), usize>,
    /// Index in `heap_levels` that was used last.
    last_heap: usize,
    /// Number of the last peak; 0 before the first.
    epoch: u32,
    /// Blocks born after the last peak with the same time stamp. They were not alive at the peak,
    /// although their times say so.
    late_births: HashSet<BlockKey>,
    counts_unknown_frees: bool,
    counts_failures: bool,
    oddities: BTreeMap<(ProcessIndex, HeapId), Oddities>,
}

/// Result of a collector.
#[derive(Debug, Default)]
pub struct Collected {
    /// Rows by stack.
    pub rows: Rows,
    /// Sum of all rows.
    pub totals: Totals,
    /// Sums by process and heap.
    pub by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
    /// The requested histograms.
    pub histograms: Vec<HistogramCounter>,
}

impl Collected {
    /// Sets the peak time of all totals.
    pub(crate) fn set_peak_time(&mut self, peak_time_ns: u64) {
        self.totals.peak_time_ns = peak_time_ns;
        self.by_heap.iter_mut().for_each(|(_, _, totals)| totals.peak_time_ns = peak_time_ns);
    }
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        choice: &'a Choice,
        filter: &Filter,
        counted: Counted,
        range: Span,
        has_required: Option<&'a [bool]>,
        is_by_thread: bool,
    ) -> Self {
        Self {
            choice,
            sampling: None,
            counted,
            range,
            end_ns: range.to,
            lifetime: filter.lifetime,
            is_temporary_only: filter.is_temporary_only,
            has_required,
            rows: RowTable::new(is_by_thread),
            histograms: Vec::new(),
            level: Level::default(),
            heap_levels: Vec::new(),
            heap_places: hashbrown::HashMap::new(),
            last_heap: 0,
            epoch: 0,
            late_births: HashSet::new(),
            counts_unknown_frees: filter.counts_unknown_frees(),
            counts_failures: filter.is_known_at_birth(),
            oddities: BTreeMap::new(),
        }
    }

    /// Sets the histograms that are counted.
    pub(crate) fn with_histograms(self, histograms: &[HistogramOf]) -> Self {
        Self { histograms: histograms.iter().map(|&of| HistogramCounter::new(of)).collect(), ..self }
    }

    /// Weighs blocks as samples, unless `sampling` is exact.
    pub(crate) fn of_samples(self, sampling: &'a Sampling) -> Self {
        Self { sampling: (!sampling.is_exact()).then_some(sampling), ..self }
    }

    /// Sets the end of the replay.
    pub(crate) fn until(self, end_ns: u64) -> Self {
        Self { end_ns, ..self }
    }

    #[inline]
    fn weight(&self, block: &Block) -> Weight {
        self.sampling.map_or(Weight::exact(block.size_bytes), |sampling| sampling.weight(block))
    }

    /// Adds a block that was live before the replay's first event. If blocks born before the range
    /// are counted, it was live at the range's start.
    pub(crate) fn was_live(&mut self, block: &Block) {
        self.raise(block, self.range.from);
    }

    /// Handles a block's birth.
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
        let weight = self.weight(block);
        if self.level.grow(weight, time_ns) {
            self.epoch = self.epoch.saturating_add(1);
            self.late_births.clear();
        } else if time_ns == self.level.peak_time_ns && self.epoch > 0 {
            self.late_births.insert(block_key(block));
        }
        self.heap_level(block).grow(weight, time_ns);
    }

    fn heap_level(&mut self, block: &Block) -> &mut Level {
        let key = (block.process, block.heap);
        let is_last = |&(process, heap, _): &(_, _, _)| (process, heap) == key;
        if !self.heap_levels.get(self.last_heap).is_some_and(is_last) {
            let levels = &mut self.heap_levels;
            self.last_heap = *self.heap_places.entry(key).or_insert_with(|| {
                levels.push((block.process, block.heap, Level::default()));
                levels.len() - 1
            });
        }
        &mut self.heap_levels[self.last_heap].2
    }

    /// Handles a block's end inside the replay.
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
        let weight = self.weight(block);
        self.level.shrink(weight);
        self.heap_level(block).shrink(weight);
    }

    /// Handles a block whose process ends inside the replay without having freed it.
    pub(crate) fn left(&mut self, block: &Block) {
        if !self.choice.has(block) || !self.counts_births_of(block.alloc_ns) {
            return;
        }
        if self.counted != Counted::Live && self.counts_outstanding(block) {
            self.count(block, None, self.end_ns);
        }
        let weight = self.weight(block);
        self.level.shrink(weight);
        self.heap_level(block).shrink(weight);
    }

    fn counts_outstanding(&self, block: &Block) -> bool {
        match self.counted {
            Counted::Born | Counted::Live => true,
            Counted::Type(kind) => !kind.is_freed_inside() && self.counts_births_of(block.alloc_ns),
        }
    }

    /// Handles a block that is live when the replay ends, at `end_ns`.
    pub(crate) fn is_live_at_end(&mut self, block: &Block, end_ns: u64) {
        let is_counted = self.counts_outstanding(block);
        if is_counted && self.choice.has(block) {
            self.count(block, None, end_ns);
        }
    }

    fn count(&mut self, block: &Block, death: Option<Death>, end_ns: u64) {
        // A replay that starts at a checkpoint does not know each thread's last allocation before
        // it.
        let is_born_inside = self.range.contains(block.alloc_ns);
        // For a sample, the thread's calls before the next sample are unknown.
        let is_sample = self.sampling.is_some_and(|sampling| sampling.is_sample(block));
        let is_temporary = is_born_inside && !is_sample && death.is_some_and(|death| death.is_temporary);
        let free_ns = death.map_or(end_ns, |death| death.free_ns);
        let lifetime_ns = free_ns.saturating_sub(block.alloc_ns);
        let passes = self.lifetime.is_none_or(|lifetime| lifetime.contains(lifetime_ns))
            && (is_temporary || !self.is_temporary_only)
            && self.has_required.is_none_or(|has| has.get(block.stack.0 as usize).copied().unwrap_or(false));
        if !passes {
            return;
        }
        let weight = self.weight(block);
        let row = self.rows.row(RowKey {
            stack: block.stack,
            process: block.process,
            heap: block.heap,
            thread: block.thread,
        });
        if self.counted == Counted::Live || self.was_live_at_peak(block) {
            self.rows.add_peak(row, self.epoch, weight);
        }
        let amounts = &mut self.rows.totals_mut(row).amounts;
        let mut one = Amounts { total_count: weight.count, total_bytes: weight.bytes, ..Amounts::default() };
        one.variances.total_count = weight.count_variance;
        one.variances.total_bytes = weight.bytes_variance_kib2;
        if block.is_realloc {
            one.realloc_count = weight.count;
            one.variances.realloc_count = weight.count_variance;
        }
        one.temporary_count = u64::from(is_temporary);
        if death.is_none() {
            one.outstanding_count = weight.count;
            one.outstanding_bytes = weight.bytes;
            one.variances.outstanding_count = weight.count_variance;
            one.variances.outstanding_bytes = weight.bytes_variance_kib2;
        }
        *amounts += &one;
        if death.is_some_and(|death| death.is_implied) {
            self.oddities.entry((block.process, block.heap)).or_default().implied += weight.count;
        }
        for histogram in &mut self.histograms {
            histogram.add(block.size_bytes, lifetime_ns, weight, death.is_none());
        }
    }

    /// Whether a block that ends was alive at the last peak.
    fn was_live_at_peak(&self, block: &Block) -> bool {
        if self.epoch == 0 {
            return false;
        }
        let peak_ns = self.level.peak_time_ns;
        block.alloc_ns < peak_ns
            || (block.alloc_ns == peak_ns && !self.late_births.contains(&block_key(block)))
    }

    /// Handles a free of a block that was never seen allocated.
    pub(crate) fn freed_unknown(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        let is_in_doubt = self.sampling.is_some_and(|sampling| sampling.is_in_doubt(process));
        if !is_in_doubt
            && self.counts_unknown_frees
            && self.choice.has_origin(process, event.heap, event.thread)
        {
            let oddities = self.oddities.entry((process, event.heap)).or_default();
            oddities.inherited += u64::from(is_inherited);
            oddities.unmatched += u64::from(!is_inherited);
        }
    }

    /// Handles a failed call.
    pub(crate) fn failed(&mut self, event: &Event, process: ProcessIndex, size_bytes: u64) {
        let is_chosen = self.choice.has_origin(process, event.heap, event.thread);
        if self.counts_failures && is_chosen && self.choice.has_size(size_bytes) {
            self.oddities.entry((process, event.heap)).or_default().failed += 1;
        }
    }

    /// Resets the counts of oddities.
    pub(crate) fn forget_oddities(&mut self) {
        self.oddities.clear();
    }

    /// Live bytes of the chosen blocks.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.level.live_bytes
    }

    /// Bytes and time of the greatest peak so far.
    pub(crate) fn peak(&self) -> (u64, u64) {
        (self.level.peak_bytes, self.level.peak_time_ns)
    }

    /// Returns all amounts. The heaps have their own peaks only if no filter beyond the choice
    /// decides which blocks count.
    pub(crate) fn finish(self) -> Collected {
        let is_whole = self.lifetime.is_none()
            && !self.is_temporary_only
            && self.has_required.is_none()
            && self.counted == Counted::Born;
        let rows = self.rows.finish(self.epoch);
        let mut sums = RowSums::default();
        rows.totals.iter().for_each(|row| sums.add(row));
        sums.set_peak_time(self.level.peak_time_ns);
        sums.add_oddities(&self.oddities);
        let mut collected =
            Collected { rows, totals: sums.totals, by_heap: sums.by_heap, histograms: self.histograms };
        if is_whole {
            for (process, heap, totals) in &mut collected.by_heap {
                if let Some(&place) = self.heap_places.get(&(*process, *heap)) {
                    let level = &self.heap_levels[place].2;
                    totals.variances.peak_bytes = level.peak_variances.bytes_kib2;
                    totals.variances.peak_count = level.peak_variances.count;
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

/// Sums of rows: over all, and by process and heap in that order.
#[derive(Debug, Default)]
pub struct RowSums {
    /// Sum of all rows.
    pub totals: Totals,
    /// Sums by process and heap.
    pub by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
}

impl RowSums {
    /// Adds a row.
    pub fn add(&mut self, row: &StackTotals) {
        self.totals.add_amounts(&row.amounts);
        self.heap(row.process, row.heap).add_amounts(&row.amounts);
    }

    /// Adds the oddities, which belong to no row. After that, frees are those of the program, as in
    /// a file's summary.
    pub fn add_oddities(&mut self, by_heap: &BTreeMap<(ProcessIndex, HeapId), Oddities>) {
        for (&(process, heap), oddities) in by_heap {
            add_odd(&mut self.totals, oddities);
            add_odd(self.heap(process, heap), oddities);
        }
    }

    fn heap(&mut self, process: ProcessIndex, heap: HeapId) -> &mut Totals {
        let at = self
            .by_heap
            .binary_search_by_key(&(process, heap), |&(process, heap, _)| (process, heap))
            .unwrap_or_else(|at| {
                self.by_heap.insert(at, (process, heap, Totals::default()));
                at
            });
        &mut self.by_heap[at].2
    }

    /// Sets the peak time of all totals.
    pub fn set_peak_time(&mut self, peak_time_ns: u64) {
        self.totals.peak_time_ns = peak_time_ns;
        self.by_heap.iter_mut().for_each(|(_, _, totals)| totals.peak_time_ns = peak_time_ns);
    }
}

fn add_odd(sum: &mut Totals, oddities: &Oddities) {
    sum.failed_count += oddities.failed;
    sum.unmatched_frees += oddities.unmatched;
    sum.inherited_frees += oddities.inherited;
    sum.implied_frees += oddities.implied;
    let frees = sum.free_count + oddities.unmatched + oddities.inherited;
    sum.free_count = frees.saturating_sub(oddities.implied);
}
