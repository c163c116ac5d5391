//! A place in the program that allocates.

use std::ops::AddAssign;

use heapr_query::Owner;
use heapr_trace::{Amounts, CourseRow, ProcessIndex, StackIndex};

/// What a function held at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Blocks made until then.
    pub(crate) made: u64,
}

impl Held {
    /// With what a stack held then.
    pub(crate) fn add(&mut self, row: &CourseRow) {
        *self += Self { bytes: row.live_bytes, count: row.live_count, made: row.total_count };
    }
}

impl AddAssign for Held {
    fn add_assign(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.count = self.count.saturating_add(other.count);
        self.made = self.made.saturating_add(other.made);
    }
}

/// All that a function of the program's own allocates in a process, with what it calls.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) process: ProcessIndex,
    /// The code is the program's, a library's, or the runtime's.
    pub(crate) owner: Owner,
    pub(crate) amounts: Amounts,
    /// The stack that stands for it: the one with most at the peak or left.
    pub(crate) stack: StackIndex,
    pub(crate) weight: u64,
    /// By moment of the recording.
    pub(crate) held: Vec<Held>,
}
