//! When processes ended, in order: what they had left ends with them.
//!
//! An end counts before the first event that comes after it. Behind the last event of a recording
//! none counts: what was live then is what the recording ends with.

use heapr_trace::ProcessIndex;

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnds {
    /// The latest first.
    waiting: Vec<(u64, ProcessIndex)>,
}

impl ProcessEnds {
    /// Of some ends, in any order.
    #[must_use]
    pub fn new(mut ends: Vec<(u64, ProcessIndex)>) -> Self {
        ends.sort_unstable_by(|one, other| other.cmp(one));
        Self { waiting: ends }
    }

    /// Adds one.
    pub fn add(&mut self, end_ns: u64, process: ProcessIndex) {
        let place = self.waiting.partition_point(|&waiting| waiting > (end_ns, process));
        self.waiting.insert(place, (end_ns, process));
    }

    /// Takes one back: the process goes on.
    pub fn forget(&mut self, process: ProcessIndex) {
        self.waiting.retain(|&(_, waiting)| waiting != process);
    }

    /// Whether the end of a process is still to come.
    #[must_use]
    pub fn has(&self, process: ProcessIndex) -> bool {
        self.waiting.iter().any(|&(_, waiting)| waiting == process)
    }

    /// When the next process ends; `u64::MAX` if none is known.
    #[inline(always)]
    #[must_use]
    pub fn next_ns(&self) -> u64 {
        self.waiting.last().map_or(u64::MAX, |&(end_ns, _)| end_ns)
    }

    /// Takes the next end, if it lies before a time.
    pub fn take_before(&mut self, time_ns: u64) -> Option<(u64, ProcessIndex)> {
        if self.next_ns() < time_ns { self.waiting.pop() } else { None }
    }
}
