//! Helpers that tests of several crates share. Only tests may depend on this crate.
#![forbid(unsafe_code)]

mod skipped;
mod waiting;

pub use skipped::{cannot_run_here, not_run};
pub use waiting::{LIMIT, wait_until, within_limit};
