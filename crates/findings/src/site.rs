//! A place in the program that allocates.

use heapr_query::Owner;
use heapr_trace::{Amounts, ProcessIndex, StackIndex};

/// What a function held at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Blocks made until then.
    pub(crate) made: u64,
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
