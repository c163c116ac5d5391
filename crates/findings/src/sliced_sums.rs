//! Sums of large blocks of which only slices are used.

use heapr_table::quantity::bytes;
use heapr_trace::SlicedBlock;

/// Sums of blocks of which only slices are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SlicedSums {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) covered_bytes: u64,
}

impl SlicedSums {
    /// Adds a block of a size.
    pub(crate) fn add(&mut self, size_bytes: u64, slices: &SlicedBlock) {
        let covered_bytes = slices.covered_bytes.min(size_bytes);
        self.add_sums(&Self { count: 1, bytes: size_bytes, covered_bytes });
    }

    pub(crate) fn add_sums(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.covered_bytes = self.covered_bytes.saturating_add(other.covered_bytes);
    }

    /// Covered bytes, in words: `62.5 KiB of 62.5 MiB (16 B of 16.0 KiB each)`.
    pub(crate) fn covered(&self) -> String {
        let all = format!("{} of {}", bytes(self.covered_bytes), bytes(self.bytes));
        match self.count {
            0 | 1 => all,
            count => {
                format!("{all} ({} of {} each)", bytes(self.covered_bytes / count), bytes(self.bytes / count))
            }
        }
    }
}
