//! Waiting for a condition. A test never waits for a duration: on a busy machine that is too short.

use std::time::{Duration, Instant};

/// How long a condition may take before a test gives up; far more than any needs on a machine with
/// other work.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Asks until there is an answer.
///
/// # Panics
/// There is none within [`LIMIT`].
#[track_caller]
pub fn wait_until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begin.elapsed() < LIMIT, "waited {} s in vain until {what}", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(2));
    }
}
