//! Ends of processes in order of time; unfreed blocks end with their process.
//!
//! An end counts before the first event after it. Ends behind the last event of a recording do not
//! count: blocks that are live then are those of the recording's end.

use heapr_trace::ProcessIndex;

/// Queue of the ends of processes.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnds {
    /// Ends that are still to come, the latest first.
    waiting: Vec<(u64, ProcessIndex)>,
}

impl ProcessEnds {
    /// A queue of ends in any order.
    #[must_use]
    pub fn new(mut ends: Vec<(u64, ProcessIndex)>) -> Self {
        ends.sort_unstable_by(|one, other| other.cmp(one));
        Self { waiting: ends }
    }

    /// Adds an end.
    pub fn add(&mut self, end_ns: u64, process: ProcessIndex) {
        let place = self.waiting.partition_point(|&waiting| waiting > (end_ns, process));
        self.waiting.insert(place, (end_ns, process));
    }

    /// Removes the end of a process that continues after all.
    pub fn forget(&mut self, process: ProcessIndex) {
        self.waiting.retain(|&(_, waiting)| waiting != process);
    }

    /// Whether the end of a process is still to come.
    #[must_use]
    pub fn has(&self, process: ProcessIndex) -> bool {
        self.waiting.iter().any(|&(_, waiting)| waiting == process)
    }

    /// Time of the next end; `u64::MAX` without one.
    #[inline(always)]
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.waiting.last().map_or(u64::MAX, |&(end_ns, _)| end_ns)
    }

    /// Removes and returns the next end, if it lies before a time.
    pub fn take_before(&mut self, time_ns: u64) -> Option<(u64, ProcessIndex)> {
        if self.next_ns() < time_ns { self.waiting.pop() } else { None }
    }
}
