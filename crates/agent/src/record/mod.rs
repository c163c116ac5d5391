//! What a thread writes for the recorder: its buffer, the order of its events, their times.

pub(crate) mod claims;
pub(crate) mod control_block;
pub(crate) mod event_clock;
pub(crate) mod events;
pub(crate) mod thread;
