//! Counting of sampled calls at a function's entry. No calls are counted on this processor.

use heapr_wire::Signature;

/// Quantity of a call that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {}

impl Counted {
    /// Quantity that is counted for a function of the C library.
    pub(crate) fn of(_name: &str) -> Option<Self> {
        None
    }
}

/// Location of a thread's countdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Countdown {
    /// Offset from the thread pointer to the word with the address of the thread's state.
    pub(crate) slot_offset: i32,
    /// Offset of the countdown in the thread's state.
    pub(crate) left_offset: i32,
}

/// Location of a thread's countdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Offset from the thread pointer.
    Thread(i32),
    /// Offset in the thread's state.
    State(Countdown),
}

/// Locations for sampling, common to all functions of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sampling {
    /// Address of the page marks; 0: it is written later.
    pub(crate) marks_avma: u64,
    pub(crate) place: Place,
}

impl Sampling {
    /// Value for a process that is about to be attached to.
    pub(crate) const LATER: Self =
        Self { marks_avma: 0, place: Place::State(Countdown { slot_offset: 0, left_offset: 0 }) };
}

/// Plan for counting a function's calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AllRegistersCountdown {}

impl AllRegistersCountdown {
    /// Plans the counting of a function with this code. `None`: all of its calls go to the agent.
    pub(crate) fn plan(_signature: Signature, _code: &[u8], _sampling: Sampling) -> Option<Self> {
        None
    }

    /// Variant of the plan with the countdown in a thread's state, for an attach.
    pub(crate) fn in_state(&self, _countdown: Countdown) -> Self {
        match *self {}
    }
}
