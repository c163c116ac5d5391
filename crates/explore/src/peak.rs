//! The peak of live bytes in a range.

use heapr_trace::{HeapId, ProcessIndex};

use crate::event_table::EventTable;

/// Peaks by process and heap.
pub(crate) type HeapPeaks = Vec<(ProcessIndex, HeapId, Peak)>;

/// Largest number of live bytes, and the time at which it was first reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Sequence number of the birth that reached the peak; `None` without a birth.
    pub(crate) sequence: Option<u32>,
    pub(crate) time_ns: u64,
}

impl Peak {
    /// Records a new peak, reached by a birth.
    pub(crate) fn reach(&mut self, bytes: i128, count: i64, sequence: u32) {
        self.bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.count = u64::try_from(count).unwrap_or(0);
        self.sequence = Some(sequence);
    }

    pub(crate) fn find_time(&mut self, table: &EventTable) {
        self.time_ns = self.sequence.map_or(0, |sequence| table.times.get(sequence));
    }
}
