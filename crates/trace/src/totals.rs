//! Totals of a recording: over everything, by process and heap, and by stack.

use crate::bytes::{PutBytes as _, Take};
use crate::error::Malformed;
use crate::tables::Entry;
use crate::{Amounts, Course, HeapId, ProcessIndex, StackIndex, Variances};

/// Totals of one stack at the end of the recording. With these a report without filters needs no
/// replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackTotals {
    /// The stack (innermost node), with its process.
    pub stack: StackIndex,
    /// Process of the blocks.
    pub process: ProcessIndex,
    /// Heap of the blocks.
    pub heap: HeapId,
    /// Amounts of the stack's blocks: live at the end, and at the session's peak.
    pub amounts: Amounts,
}

/// Totals of the whole file or of one process and heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Allocations (reallocations count as one each).
    pub alloc_count: u64,
    /// Requested bytes of these allocations.
    pub alloc_bytes: u64,
    /// Number of free calls and freeing halves of reallocations.
    pub free_count: u64,
    /// Allocations that came out of a realloc.
    pub realloc_count: u64,
    /// Failed calls.
    pub failed_count: u64,
    /// Temporary allocations.
    pub temporary_count: u64,
    /// Number of blocks live at the end.
    pub outstanding_count: u64,
    /// Bytes of the blocks live at the end.
    pub outstanding_bytes: u64,
    /// Largest number of live bytes, exact.
    pub peak_bytes: u64,
    /// Live blocks at that moment.
    pub peak_count: u64,
    /// Time at which the peak was first reached.
    pub peak_time_ns: u64,
    /// Number of frees of addresses that were never seen allocated.
    pub unmatched_frees: u64,
    /// Number of frees, in a forked child, of blocks that its parent had allocated.
    pub inherited_frees: u64,
    /// Number of blocks whose address was handed out again without an observed free.
    pub implied_frees: u64,
    /// Variances of the amounts that are estimates.
    pub variances: Variances,
}

impl Totals {
    /// Adds the amounts of some stacks. Blocks that are not live at the end count as freed. A
    /// file may claim any numbers, so that sums saturate.
    pub fn add_amounts(&mut self, amounts: &Amounts) {
        self.variances += &amounts.variances;
        self.alloc_count = self.alloc_count.saturating_add(amounts.total_count);
        self.alloc_bytes = self.alloc_bytes.saturating_add(amounts.total_bytes);
        self.free_count =
            self.free_count.saturating_add(amounts.total_count.saturating_sub(amounts.outstanding_count));
        self.realloc_count = self.realloc_count.saturating_add(amounts.realloc_count);
        self.temporary_count = self.temporary_count.saturating_add(amounts.temporary_count);
        self.outstanding_count = self.outstanding_count.saturating_add(amounts.outstanding_count);
        self.outstanding_bytes = self.outstanding_bytes.saturating_add(amounts.outstanding_bytes);
        self.peak_count = self.peak_count.saturating_add(amounts.peak_count);
        self.peak_bytes = self.peak_bytes.saturating_add(amounts.peak_bytes);
    }

    /// The amounts that totals by stack have, too.
    #[must_use]
    pub fn amounts(&self) -> Amounts {
        Amounts {
            total_count: self.alloc_count,
            total_bytes: self.alloc_bytes,
            realloc_count: self.realloc_count,
            temporary_count: self.temporary_count,
            outstanding_count: self.outstanding_count,
            outstanding_bytes: self.outstanding_bytes,
            peak_count: self.peak_count,
            peak_bytes: self.peak_bytes,
            variances: self.variances,
        }
    }
}

impl Entry for Totals {
    fn put(&self, out: &mut Vec<u8>) {
        for count in [
            self.alloc_count,
            self.alloc_bytes,
            self.free_count,
            self.realloc_count,
            self.failed_count,
            self.temporary_count,
            self.outstanding_count,
            self.outstanding_bytes,
            self.peak_bytes,
            self.peak_count,
            self.peak_time_ns,
            self.unmatched_frees,
            self.inherited_frees,
            self.implied_frees,
        ] {
            out.put_varint(count);
        }
    }

    fn take(take: &mut Take<'_>) -> std::result::Result<Self, Malformed> {
        Ok(Self {
            alloc_count: take.varint()?,
            alloc_bytes: take.varint()?,
            free_count: take.varint()?,
            realloc_count: take.varint()?,
            failed_count: take.varint()?,
            temporary_count: take.varint()?,
            outstanding_count: take.varint()?,
            outstanding_bytes: take.varint()?,
            peak_bytes: take.varint()?,
            peak_count: take.varint()?,
            peak_time_ns: take.varint()?,
            unmatched_frees: take.varint()?,
            inherited_frees: take.varint()?,
            implied_frees: take.varint()?,
            variances: Variances::default(),
        })
    }
}

/// The summary that closes a file: see [`StackTotals`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Totals over all processes and heaps; the peak is that of their sum.
    pub totals: Totals,
    /// Totals by process and heap, each with its own peak.
    pub by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
    /// Totals by stack, in order of (stack, heap).
    pub by_stack: Vec<StackTotals>,
    /// Number of events in the file.
    pub event_count: u64,
    /// Time of the last event or the session's end.
    pub duration_ns: u64,
    /// Live memory at moments of the recording.
    pub course: Course,
    /// True if the peak and the course count only living processes. (Older files count blocks of
    /// ended processes, too.)
    pub counts_living: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_the_amounts_that_a_file_claims_saturate() {
        let mut most = Amounts::default();
        most.counters_mut().into_iter().for_each(|counter| *counter = u64::MAX);
        let mut totals = Totals::default();
        let mut sum = Amounts::default();
        for _ in 0..2 {
            totals.add_amounts(&most);
            totals.add_amounts(&Amounts { total_count: u64::MAX, ..Amounts::default() });
            sum += &most;
        }
        assert_eq!((totals.amounts(), totals.free_count), (most, u64::MAX));
        assert_eq!(sum, most);
    }
}
