//! The greatest sum of live bytes, found part by part.
//!
//! A part of the moves knows nothing of what is live at its start: it counts from zero, below which it may go, and notes its
//! highest point. Appended in order, the parts give what one pass over all moves would give.

use heapr_trace::{HeapId, ProcessIndex};

use super::event_table::EventTable;

/// By process and heap.
pub(crate) type HeapPeaks = Vec<(ProcessIndex, HeapId, Peak)>;

/// Of a part of the moves.
#[derive(Debug, Clone, Copy)]
pub(super) struct PeakPart {
    /// Bytes live at its end less those at its start.
    bytes: i128,
    count: i64,
    /// The highest point behind a birth, the first of equal ones; `None` without births.
    highest: Option<(i128, i64, u32)>,
    /// As a number that is compared fast: below everything without births.
    highest_bytes: i128,
}

impl Default for PeakPart {
    fn default() -> Self {
        Self { bytes: 0, count: 0, highest: None, highest_bytes: i128::MIN }
    }
}

impl PeakPart {
    /// The next move.
    #[inline(always)]
    pub(super) fn step(&mut self, size_bytes: u64, sequence: u32, is_end: bool) {
        if is_end {
            self.bytes -= i128::from(size_bytes);
            self.count -= 1;
            return;
        }
        self.bytes += i128::from(size_bytes);
        self.count += 1;
        if self.bytes > self.highest_bytes {
            self.highest_bytes = self.bytes;
            self.highest = Some((self.bytes, self.count, sequence));
        }
    }
}

/// Live bytes and their greatest sum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Peak {
    live_bytes: i128,
    live_count: i64,
    pub(super) bytes: u64,
    pub(super) count: u64,
    /// Sequence number of the birth that reached it; `None`: there was none.
    pub(super) sequence: Option<u32>,
    pub(super) time_ns: u64,
}

impl Peak {
    /// The next part.
    pub(super) fn append(&mut self, part: &PeakPart) {
        if let Some((bytes, count, sequence)) = part.highest {
            let bytes = self.live_bytes + bytes;
            if bytes > i128::from(self.bytes) {
                self.bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
                self.count = u64::try_from(self.live_count + count).unwrap_or(0);
                self.sequence = Some(sequence);
            }
        }
        self.live_bytes += part.bytes;
        self.live_count += part.count;
    }

    pub(super) fn find_time(&mut self, table: &EventTable) {
        self.time_ns = self.sequence.map_or(0, |sequence| table.times.get(sequence));
    }
}
