//! Counters over a session, made of what each thread counts for itself.

use std::sync::atomic::Ordering::Relaxed;

use heapr_trace::Loss;

/// Counters over the whole session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Event buffers taken to their end.
    pub buffers_written: u64,
    /// Most buffers in use at once.
    pub buffers_claimed_max: u64,
    /// Times that a thread waited for a buffer.
    pub wait_count: u64,
    /// How long in all, ns.
    pub wait_ns: u64,
    /// Stacks that were not the thread's last one.
    pub stack_count: u64,
    /// Frames unwound for them.
    pub frames_unwound: u64,
    /// Unwind rules read from unwind tables.
    pub rule_miss_count: u64,
    /// Stacks that ended before the outermost frame.
    pub stacks_truncated: u64,
    /// Stacks compared with a full unwind.
    pub verify_count: u64,
    /// How many of them differed.
    pub verify_mismatch_count: u64,
    /// Turns that the recorder took in time that nobody else wanted.
    pub spare_turns: u64,
    /// What was lost.
    pub loss: Loss,
}

/// Adds a number that a target has written: whatever it is, the sum does not wrap.
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

/// A thread slot's counters.
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
