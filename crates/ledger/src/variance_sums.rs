//! Variances of a summary's sums, for recordings of samples. The peaks are those of the summary.
//!
//! They stand beside the counters of a summary, so that a recording of all allocations, which has
//! no variances, has no work with them.

use std::collections::HashMap;

use heapr_trace::{HeapId, LiveVariances, ProcessIndex, StackIndex, Variances, Weight};

/// Key of a stack's sums.
pub(crate) type StackKey = (Option<ProcessIndex>, HeapId, StackIndex);

/// Peaks that a new block has raised.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Raised {
    /// Epoch before the block: see [`crate::SummaryBuilder`].
    pub(crate) epoch: u32,
    /// Whether the peak of the block's heap is a new one.
    pub(crate) of_heap: bool,
    /// Whether the peak over all heaps is a new one.
    pub(crate) of_all: bool,
}

/// Variances of all sums.
#[derive(Debug, Clone, Default)]
pub(crate) struct VarianceSums {
    stacks: HashMap<StackKey, Sums>,
    heaps: HashMap<(ProcessIndex, HeapId), Sums>,
    live: LiveVariances,
    peak: LiveVariances,
}

/// Variances of the sums of a stack or heap.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// Outstanding amounts are those of live blocks.
    variances: Variances,
    /// Blocks that ended processes have not freed.
    left: LiveVariances,
    /// Epoch of the last peak that was settled.
    epoch: u32,
}

fn of_weight(weight: Weight) -> LiveVariances {
    LiveVariances { bytes_kib2: weight.bytes_variance_kib2, count: weight.count_variance }
}

impl Sums {
    fn live(&self) -> LiveVariances {
        let Variances { outstanding_bytes, outstanding_count, .. } = self.variances;
        LiveVariances { bytes_kib2: outstanding_bytes, count: outstanding_count }
    }

    fn set_peak(&mut self) {
        self.variances.peak_bytes = self.variances.outstanding_bytes;
        self.variances.peak_count = self.variances.outstanding_count;
    }

    /// Stores the live amounts as those at the last peak, if the peak came after their last change.
    fn settle(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.set_peak();
            self.epoch = epoch;
        }
    }

    fn born(&mut self, weight: Weight, is_realloc: bool) {
        let variances = &mut self.variances;
        variances.total_count = variances.total_count.saturating_add(weight.count_variance);
        variances.total_bytes = variances.total_bytes.saturating_add(weight.bytes_variance_kib2);
        if is_realloc {
            variances.realloc_count = variances.realloc_count.saturating_add(weight.count_variance);
        }
        let mut live = self.live();
        live.add(of_weight(weight));
        self.set_live(live);
    }

    fn died(&mut self, weight: Weight) {
        let mut live = self.live();
        live.remove(of_weight(weight));
        self.set_live(live);
    }

    fn set_live(&mut self, live: LiveVariances) {
        self.variances.outstanding_bytes = live.bytes_kib2;
        self.variances.outstanding_count = live.count;
    }

    /// The variances with those of left blocks, which are outstanding.
    fn finished(mut self) -> Variances {
        let mut outstanding = self.live();
        outstanding.add(self.left);
        self.set_live(outstanding);
        self.variances
    }
}

impl VarianceSums {
    /// Counts a new block.
    pub(crate) fn born(
        &mut self,
        (stack, process): (StackKey, ProcessIndex),
        weight: Weight,
        is_realloc: bool,
        raised: Raised,
    ) {
        let of_stack = self.stacks.entry(stack).or_default();
        of_stack.settle(raised.epoch);
        of_stack.born(weight, is_realloc);
        let of_heap = self.heaps.entry((process, stack.1)).or_default();
        of_heap.born(weight, is_realloc);
        if raised.of_heap {
            of_heap.set_peak();
        }
        self.live.add(of_weight(weight));
        if raised.of_all {
            self.peak = self.live;
        }
    }

    /// Counts the end of a block. `is_left`: its process has ended without freeing it.
    pub(crate) fn died(
        &mut self,
        (stack, process): (StackKey, ProcessIndex),
        weight: Weight,
        epoch: u32,
        is_left: bool,
    ) {
        let of_stack = self.stacks.entry(stack).or_default();
        of_stack.settle(epoch);
        let of_heap = self.heaps.entry((process, stack.1)).or_default();
        for sums in [of_stack, of_heap] {
            sums.died(weight);
            if is_left {
                sums.left.add(of_weight(weight));
            }
        }
        self.live.remove(of_weight(weight));
    }

    /// Variances of a stack's totals; `epoch`: that of the last peak.
    pub(crate) fn of_stack(&self, stack: StackKey, epoch: u32) -> Variances {
        let known = self.stacks.get(&stack).copied();
        known.map_or_else(Variances::default, |mut sums| {
            sums.settle(epoch);
            sums.finished()
        })
    }

    /// Variances of a stack's live amounts.
    pub(crate) fn live_of(&self, stack: StackKey) -> LiveVariances {
        self.stacks.get(&stack).map_or_else(LiveVariances::default, Sums::live)
    }

    /// Variances of a heap's totals.
    pub(crate) fn of_heap(&self, process: ProcessIndex, heap: HeapId) -> Variances {
        self.heaps.get(&(process, heap)).map_or_else(Variances::default, |sums| sums.finished())
    }

    /// Variances of the live amounts over all heaps.
    pub(crate) fn live(&self) -> LiveVariances {
        self.live
    }

    /// Variances of the totals over all heaps.
    pub(crate) fn of_all(&self) -> Variances {
        let mut all = Variances::default();
        self.heaps.values().for_each(|sums| all += &sums.finished());
        Variances { peak_bytes: self.peak.bytes_kib2, peak_count: self.peak.count, ..all }
    }
}
