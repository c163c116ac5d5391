//! Counters of one stack.

use heapr_trace::{Amounts, Block, CourseRow, HeapId, ProcessIndex, StackIndex, StackTotals};

/// Counters of allocated and freed blocks of a stack, and of those that were live at the last peak.
/// Live amounts are differences, so that an event changes only one side. The size is one cache
/// line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct StackState {
    total_bytes: u64,
    freed_bytes: u64,
    total_count: u64,
    peak_bytes: u64,
    /// Wraps modulo 2^32. (The ledger holds at most 2^32 blocks, so that the difference is right.)
    freed_count: u32,
    peak_count: u32,
    /// Epoch of the last peak that was settled.
    epoch: u32,
    realloc_count: u32,
    temporary_count: u32,
    pub(crate) process: ProcessIndex,
    pub(crate) stack: StackIndex,
}

const _: () = assert!(size_of::<StackState>() == 64);

impl StackState {
    /// Counters at zero.
    pub(crate) fn new(process: ProcessIndex, stack: StackIndex) -> Self {
        Self { process, stack, ..Self::default() }
    }

    /// Live amounts of the stack.
    pub(crate) fn course_row(&self) -> CourseRow {
        CourseRow {
            stack: self.stack,
            live_bytes: self.live_bytes(),
            live_count: u64::from(self.live_count()),
            total_count: self.total_count,
            ..CourseRow::default()
        }
    }

    fn live_bytes(&self) -> u64 {
        self.total_bytes.wrapping_sub(self.freed_bytes)
    }

    fn live_count(&self) -> u32 {
        (self.total_count as u32).wrapping_sub(self.freed_count)
    }

    /// Whether the stack has allocated a block.
    pub(crate) fn has_allocated(&self) -> bool {
        self.total_count != 0
    }

    /// Loads the counters into the caches.
    #[inline(always)]
    pub(crate) fn touch(&self) -> u64 {
        self.total_bytes
    }

    /// Stores the live amounts as those at the last peak, if the peak came after their last change.
    #[inline(always)]
    fn settle(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.peak_bytes = self.live_bytes();
            self.peak_count = self.live_count();
            self.epoch = epoch;
        }
    }

    /// Counts a new block, which stands for `count` blocks.
    #[inline(always)]
    pub(crate) fn born(&mut self, block: &Block, count: u64, epoch: u32) {
        self.settle(epoch);
        self.total_bytes = self.total_bytes.wrapping_add(block.size_bytes);
        self.total_count = self.total_count.wrapping_add(count);
        if block.is_realloc {
            self.realloc_count = self.realloc_count.saturating_add(count as u32);
        }
    }

    /// Counts a block that is no longer live.
    #[inline(always)]
    pub(crate) fn died(&mut self, block: &Block, count: u64, is_temporary: bool, epoch: u32) {
        self.settle(epoch);
        self.freed_bytes = self.freed_bytes.wrapping_add(block.size_bytes);
        self.freed_count = self.freed_count.wrapping_add(count as u32);
        self.temporary_count = self.temporary_count.saturating_add(u32::from(is_temporary));
    }

    /// The stack's entry in the summary.
    pub(crate) fn totals(mut self, stack: StackIndex, heap: HeapId, epoch: u32) -> StackTotals {
        self.settle(epoch);
        StackTotals {
            stack,
            process: self.process,
            heap,
            amounts: Amounts {
                total_count: self.total_count,
                total_bytes: self.total_bytes,
                realloc_count: u64::from(self.realloc_count),
                temporary_count: u64::from(self.temporary_count),
                outstanding_count: u64::from(self.live_count()),
                outstanding_bytes: self.live_bytes(),
                peak_count: u64::from(self.peak_count),
                peak_bytes: self.peak_bytes,
                ..Amounts::default()
            },
        }
    }
}
