//! Allocation sites: functions of the program that allocate.

use std::ops::AddAssign;

use heapr_query::Owner;
use heapr_trace::{Amounts, BlockEstimate, CourseRow, LiveVariances, ProcessIndex, StackIndex};

/// Amounts of a function at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Number of blocks made until then.
    pub(crate) made: u64,
    /// Variances of the bytes and the count.
    pub(crate) variances: LiveVariances,
}

impl Held {
    /// Adds the amounts of a stack at the same moment.
    pub(crate) fn add(&mut self, row: &CourseRow) {
        let CourseRow { live_bytes, live_count, total_count, variances, .. } = *row;
        *self += Self { bytes: live_bytes, count: live_count, made: total_count, variances };
    }

    /// The blocks, with their variances.
    pub(crate) fn live(&self) -> BlockEstimate {
        self.variances.of(self.bytes, self.count)
    }
}

impl AddAssign for Held {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.count = self.count.saturating_add(other.count);
        self.made = self.made.saturating_add(other.made);
        self.variances.add(other.variances);
    }
}

/// Owner of the sum of small stacks at a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestOwner {
    /// All stacks belong to the site with this number.
    Site(u32),
    /// The stacks belong to several functions that the caller calls, or to unnamed ones. The
    /// caller's own frame has this owner.
    Several(Owner),
}

/// Everything that a function allocates in a process, by itself and by its callees.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) process: ProcessIndex,
    /// Owner of the code: the program, a library, or the runtime. Loaded code is the runtime's.
    pub(crate) owner: Owner,
    /// True for blocks of an `import` or the like, which the function waits for.
    pub(crate) is_loading: bool,
    /// Number of the site, in [`crate::recording::Recording::site_of`];
    /// [`crate::sites::NO_SITE`] if it is a sum of sites.
    pub(crate) number: u32,
    pub(crate) amounts: Amounts,
    /// Representative stack: the one with the most bytes at the peak or left at the end.
    pub(crate) stack: StackIndex,
    pub(crate) weight: u64,
    /// Amounts by moment of the recording.
    pub(crate) held: Vec<Held>,
}
