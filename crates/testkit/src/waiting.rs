//! Waiting for a condition. Tests never wait for a fixed duration: on a busy machine it is too
//! short.

use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Factor of all limits of time: larger than 1 in an emulated machine, as the builder of its tests
/// says.
pub const SLOWNESS: u32 = match option_env!("HEAPR_TEST_EMULATED") {
    Some(_) => 10,
    None => 1,
};

/// Largest time that a test waits for a condition; far more than any needs on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(120 * SLOWNESS as u64);

/// Calls `ask` until it returns a value.
///
/// # Panics
/// Panics if there is no value within [`LIMIT`].
#[track_caller]
pub fn wait_until<T>(what: &str, ask: impl FnMut() -> Option<T>) -> T {
    let answer = wait_at_most(LIMIT, ask);
    answer.unwrap_or_else(|| panic!("waited {} s in vain until {what}", LIMIT.as_secs()))
}

/// Calls `ask` until it returns a value; `None` after `limit`.
pub(crate) fn wait_at_most<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        let answer = ask();
        if answer.is_some() || begin.elapsed() >= limit {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs `work` on its own thread, so that a test that hangs fails, and returns its result.
///
/// # Panics
/// Panics if `work` panics, or is not done within [`LIMIT`].
#[track_caller]
pub fn within_limit<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || sender.send(work()));
    match receiver.recv_timeout(LIMIT) {
        Ok(outcome) => outcome,
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what} is not done after {} s", LIMIT.as_secs()),
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(_) => unreachable!("the outcome was sent"),
        },
    }
}
