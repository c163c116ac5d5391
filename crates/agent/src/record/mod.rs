//! What a thread writes for the recorder: its buffer, the order of its events, their times.

pub(crate) mod countdown;
pub(crate) mod events;
pub(crate) mod thread;
