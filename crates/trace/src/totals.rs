//! What a recording adds up to: over all, by process and heap, by stack.

use crate::{Amounts, Course, HeapId, ProcessIndex, StackIndex, Variances};

/// What the recorder knows at the end about one stack: with these a report without filters needs no
/// replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackTotals {
    /// The stack (innermost node), with its process.
    pub stack: StackIndex,
    /// Process of the blocks.
    pub process: ProcessIndex,
    /// Heap of the blocks.
    pub heap: HeapId,
    /// Of its blocks: live at the end, and at the session's peak.
    pub amounts: Amounts,
}

/// Totals of the whole file or of one process and heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Allocations (reallocations count as one each).
    pub alloc_count: u64,
    /// Bytes asked for in them.
    pub alloc_bytes: u64,
    /// Free calls and the freeing half of reallocations.
    pub free_count: u64,
    /// Allocations that came out of a realloc.
    pub realloc_count: u64,
    /// Failed calls.
    pub failed_count: u64,
    /// Temporary allocations.
    pub temporary_count: u64,
    /// Live at the end.
    pub outstanding_count: u64,
    /// Their bytes.
    pub outstanding_bytes: u64,
    /// Largest number of live bytes, exact.
    pub peak_bytes: u64,
    /// Live blocks at that moment.
    pub peak_count: u64,
    /// When it was first reached.
    pub peak_time_ns: u64,
    /// Frees of addresses that were never seen allocated.
    pub unmatched_frees: u64,
    /// Frees, in a forked child, of blocks that its parent had allocated.
    pub inherited_frees: u64,
    /// Blocks whose address was handed out again without a free having been seen.
    pub implied_frees: u64,
    /// How uncertain they are, where they are estimates. Not in a file's summary.
    pub variances: Variances,
}

impl Totals {
    /// What there is of each stack, too.
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

/// The summary that closes a file: see [`StackTotals`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summary {
    /// Over all processes and heaps; the peak is of their sum.
    pub totals: Totals,
    /// By process and heap, each with its own peak.
    pub by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
    /// By stack, in order of (stack, heap).
    pub by_stack: Vec<StackTotals>,
    /// Number of events in the file.
    pub event_count: u64,
    /// Time of the last event or the session's end.
    pub duration_ns: u64,
    /// What was live at moments.
    pub course: Course,
    /// The peak and the course are of what lived at one moment: what a process had left ended with
    /// it. (Older files added up processes that had ended.)
    pub counts_living: bool,
}
