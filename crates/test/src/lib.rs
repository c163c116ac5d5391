//! Limits on memory in tests of Rust programs: the most that a block of code needs at once, and the
//! memory that it leaves behind.
//!
//! ```no_run
//! # fn parse(_: &str) -> usize { 0 }
//! # fn handle(_: u32) {}
//! #[test]
//! fn parsing_needs_little() {
//!     let rows = heapr_test::expect_peak(24 << 20, || parse("input"));
//!     assert_eq!(rows, 75_000);
//! }
//!
//! #[test]
//! fn a_request_leaves_nothing_behind() {
//!     heapr_test::expect_no_growth(|| handle(7));
//! }
//! ```
//!
//! The program `heapr` attaches to the test for that time: the one named by `HEAPR`, or the first
//! in `PATH`. Only allocations of the calling thread count, so that tests may run side by side;
//! [`Recording::of_process`] counts all threads. Several recordings at once wait for each other.
#![forbid(unsafe_code)]

mod error;
mod program;
mod recording;

pub use error::{Error, Result};
pub use recording::Recording;

/// Number of runs before the counted ones, in which caches fill.
const WARM_UP_RUNS: usize = 10;
/// Number of counted runs.
const RUNS: u64 = 30;

/// Runs `work`, and returns its result.
///
/// # Panics
/// Panics if `work` had more than `limit_bytes` at once, and names the stacks that held most.
/// Panics if the recording failed.
#[track_caller]
pub fn expect_peak<T>(limit_bytes: u64, work: impl FnOnce() -> T) -> T {
    let (value, recording) = recorded(Recording::of_thread(work));
    let peak_bytes = recorded(recording.peak_bytes());
    if peak_bytes > limit_bytes {
        let stacks = recorded(recording.stacks("peak"));
        panic!("the peak is {peak_bytes} bytes, and {limit_bytes} are allowed:\n{stacks}");
    }
    value
}

/// Runs `work`, and returns its result, which counts as left.
///
/// # Panics
/// Panics if `work` left more than `limit_bytes` behind, and names the stacks that allocated them.
/// Panics if the recording failed.
#[track_caller]
pub fn expect_left<T>(limit_bytes: u64, work: impl FnOnce() -> T) -> T {
    let (value, recording) = recorded(Recording::of_thread(work));
    let left_bytes = recorded(recording.left_bytes());
    if left_bytes > limit_bytes {
        let stacks = recorded(recording.stacks("so"));
        panic!("{left_bytes} bytes are left, and {limit_bytes} are allowed:\n{stacks}");
    }
    value
}

/// Runs `work` many times.
///
/// # Panics
/// Panics if some stack leaves a block behind each time, and names these stacks. Panics if the
/// recording failed.
#[track_caller]
pub fn expect_no_growth(mut work: impl FnMut()) {
    (0..WARM_UP_RUNS).for_each(|_| work());
    let ((), recording) = recorded(Recording::of_thread(|| (0..RUNS).for_each(|_| work())));
    let growing = recorded(recording.stacks_left_at_least(RUNS));
    if growing > 0 {
        let stacks = recorded(recording.stacks("so"));
        panic!("{growing} stacks leave something behind each of {RUNS} times:\n{stacks}");
    }
}

#[track_caller]
fn recorded<T>(outcome: Result<T>) -> T {
    outcome.unwrap_or_else(|error| panic!("memory could not be recorded: {error}"))
}
