//! State of the recorder for each traced process, and the session's counters.

pub(crate) mod called_stacks;
pub(crate) mod own_heaps;
pub(crate) mod process_state;
pub(crate) mod statistics;
