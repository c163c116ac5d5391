//! A thread's records for the recorder: its buffer, the order of its events, their times.

pub(crate) mod countdown;
pub(crate) mod events;
pub(crate) mod late_threads;
pub(crate) mod thread;
pub(crate) mod thread_key;
pub(crate) mod thread_state;
pub(crate) mod thread_states;
pub(crate) mod writing;
