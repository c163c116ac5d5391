//! What tests of several crates share. No crate but tests may depend on it.
#![forbid(unsafe_code)]

mod skipped;
mod waiting;

pub use skipped::{cannot_run_here, not_run};
pub use waiting::{LIMIT, wait_until, within_limit};
