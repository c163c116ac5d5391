//! Waiting for the recorder by a thread that reads a stopped process.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Interval at which a thread wakes up that waits for its recorder.
const BETWEEN_WAITS: Duration = Duration::from_millis(100);

/// Receives from the recorder, or returns `None` if nothing comes in the time that is left. Runs
/// once in each [`BETWEEN_WAITS`]: a thread that waits for its recorder must not look like one
/// that waits for its target.
pub(crate) fn receive_awake<T>(given: &Receiver<T>, left: impl Fn() -> Duration) -> Option<T> {
    loop {
        let left = left();
        match given.recv_timeout(left.min(BETWEEN_WAITS)) {
            Ok(received) => return Some(received),
            Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_thread_that_waits_for_its_recorder_runs_meanwhile() {
        let (give, given) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        let waiting = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            receive_awake(&given, || Duration::from_secs(600))
        });
        let tid = told.recv().unwrap();
        let run_ns = || -> u64 {
            let text = std::fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).unwrap();
            text.split_ascii_whitespace().next().unwrap().parse().unwrap()
        };
        // Until it has come to its wait it runs anyway.
        let mut earlier = run_ns();
        for _ in 0..20 {
            heapr_testkit::wait_until("the thread runs again", || (run_ns() > earlier).then_some(()));
            earlier = run_ns();
        }
        give.send(7).unwrap();
        assert_eq!(waiting.join().unwrap(), Some(7));
        let (_give, given) = mpsc::channel::<()>();
        assert_eq!(receive_awake(&given, || Duration::ZERO), None);
    }
}
