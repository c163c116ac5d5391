//! The crate's tests against real processes.

mod exec_watch;
