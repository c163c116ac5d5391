//! The greatest sum of live bytes of a range.

use heapr_trace::{HeapId, ProcessIndex};

use crate::event_table::EventTable;

/// By process and heap.
pub(crate) type HeapPeaks = Vec<(ProcessIndex, HeapId, Peak)>;

/// The most live bytes, and when they were reached first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Sequence number of the birth that reached it; `None`: there was none.
    pub(crate) sequence: Option<u32>,
    pub(crate) time_ns: u64,
}

impl Peak {
    /// A birth has reached more than all before.
    pub(crate) fn reach(&mut self, bytes: i128, count: i64, sequence: u32) {
        self.bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.count = u64::try_from(count).unwrap_or(0);
        self.sequence = Some(sequence);
    }

    pub(crate) fn find_time(&mut self, table: &EventTable) {
        self.time_ns = self.sequence.map_or(0, |sequence| table.times.get(sequence));
    }
}
