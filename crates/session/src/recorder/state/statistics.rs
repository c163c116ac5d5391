//! Counters over a session, summed from the counters of threads.

use std::sync::atomic::Ordering::Relaxed;

use heapr_trace::Loss;

/// Counters over the whole session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Event buffers read to their end.
    pub buffers_written: u64,
    /// Largest number of buffers in use at once.
    pub buffers_claimed_max: u64,
    /// Number of times that a thread waited for a buffer.
    pub wait_count: u64,
    /// Sum of the waiting times, ns.
    pub wait_ns: u64,
    /// Stacks that differed from the thread's cached stack.
    pub stack_count: u64,
    /// Frames unwound for these stacks.
    pub frames_unwound: u64,
    /// Unwind rules read from unwind tables.
    pub rule_miss_count: u64,
    /// Stacks that ended before the outermost frame.
    pub stacks_truncated: u64,
    /// Stacks compared with a full unwind.
    pub verify_count: u64,
    /// Compared stacks that differed.
    pub verify_mismatch_count: u64,
    /// Turns of the recorder in spare processor time.
    pub spare_turns: u64,
    /// Losses.
    pub loss: Loss,
}

/// Adds a number that a target has written, without wrapping.
pub(crate) fn add(sum: &mut u64, amount_untrusted: u64) {
    *sum = sum.saturating_add(amount_untrusted);
}

impl Statistics {
    pub(crate) fn add_thread(&mut self, counters: ThreadCounters) {
        add(&mut self.wait_count, counters.wait_count);
        add(&mut self.wait_ns, counters.wait_ns);
        add(&mut self.stack_count, counters.stack_count);
        add(&mut self.frames_unwound, counters.frames_unwound);
        add(&mut self.rule_miss_count, counters.rule_miss_count);
        add(&mut self.stacks_truncated, counters.stacks_truncated);
        add(&mut self.loss.events_lost, counters.events_lost);
    }
}

/// Counters of a thread slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadCounters {
    pub(crate) events_lost: u64,
    pub(crate) wait_count: u64,
    pub(crate) wait_ns: u64,
    pub(crate) stack_count: u64,
    pub(crate) frames_unwound: u64,
    pub(crate) rule_miss_count: u64,
    pub(crate) stacks_truncated: u64,
}

impl ThreadCounters {
    pub(crate) fn read(slot: &heapr_wire::ThreadSlot) -> Self {
        Self {
            events_lost: slot.events_lost.load(Relaxed),
            wait_count: slot.wait_count.load(Relaxed),
            wait_ns: slot.wait_ns.load(Relaxed),
            stack_count: slot.stack_count.load(Relaxed),
            frames_unwound: slot.frames_unwound.load(Relaxed),
            rule_miss_count: slot.rule_miss_count.load(Relaxed),
            stacks_truncated: slot.stacks_truncated.load(Relaxed),
        }
    }
}
