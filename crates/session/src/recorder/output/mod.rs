//! The session's file: events, notes of runtimes and allocators, and the next file.

pub(crate) mod go_notes;
pub(crate) mod going_on;
pub(crate) mod inside_notes;
pub(crate) mod next_file;
pub(crate) mod sink;
