//! Reading of a stopped target by another thread than its tracer. If a read waits (for a program
//! that serves its own memory, a file server, a disk), the target is resumed all the same.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::ptrace::own_tid;
use crate::urgency::Urgency;

/// Report that the target was resumed before all was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LetGo {
    /// Time until the target was resumed.
    pub after: Duration,
    /// True if the time that was allowed is over. If not, the reading thread waited without any
    /// progress for [`WAITS_FOR`], or ended without a result.
    pub is_overdue: bool,
}

/// Interval of checks of the reading thread.
const BETWEEN: Duration = Duration::from_millis(50);
/// Time without progress after which a read counts as waiting.
const WAITS_FOR: Duration = Duration::from_secs(1);

/// Runs `look` in another thread. If that takes longer than `longest`, or waits for a second,
/// `let_go` is called at once in this thread. The end of `look` is then awaited, and its result
/// discarded.
pub(crate) fn look_in_time<T: Send>(
    longest: Option<Duration>,
    look: impl FnOnce() -> T + Send,
    let_go: impl FnOnce(),
) -> Result<T, LetGo> {
    let begin = Instant::now();
    let (tell, told) = mpsc::channel::<()>();
    let reader = AtomicU32::new(0);
    let mut look = Some(look);
    let mut work = || {
        let _urgency = Urgency::begin();
        reader.store(own_tid(), Relaxed);
        look.take().map(|look| look())
    };
    let outcome = thread::scope(|scope| {
        let reading = || {
            let found = work();
            drop(tell);
            found
        };
        let builder = thread::Builder::new().name("heapr-look".to_owned());
        let Ok(thread) = builder.spawn_scoped(scope, reading) else { return None };
        let mut progress = Progress::default();
        let is_overdue = loop {
            let left = longest.map_or(BETWEEN, |longest| longest.saturating_sub(begin.elapsed()));
            if told.recv_timeout(left.min(BETWEEN)) != Err(RecvTimeoutError::Timeout) {
                break None;
            }
            if longest.is_some_and(|longest| begin.elapsed() >= longest) {
                break Some(true);
            }
            if progress.is_stuck(reader.load(Relaxed)) {
                break Some(false);
            }
        };
        let late = is_overdue.map(|is_overdue| LetGo { after: begin.elapsed(), is_overdue });
        if late.is_some() {
            let_go();
        }
        let found = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Some(late.map_or(Ok(found), Err))
    });
    match outcome {
        Some(Ok(Some(found))) => Ok(found),
        Some(Err(late)) => Err(late),
        // The closure runs only once.
        Some(Ok(None)) => Err(LetGo { after: begin.elapsed(), is_overdue: false }),
        // No other thread can be created.
        None => work().ok_or_else(|| LetGo { after: begin.elapsed(), is_overdue: false }),
    }
}

/// Progress of a thread of this process.
#[derive(Debug, Default)]
struct Progress {
    run_ns: Option<u64>,
    since: Option<Instant>,
}

impl Progress {
    fn is_stuck(&mut self, tid: u32) -> bool {
        let place = format!("/proc/self/task/{tid}/schedstat");
        let text = std::fs::read_to_string(place).unwrap_or_default();
        let run_ns = text.split_ascii_whitespace().next().and_then(|word| word.parse().ok());
        let waits = heapr_proc::Stat::of_thread(std::process::id(), tid)
            .is_some_and(|stat| matches!(stat.state(), 'S' | 'D'));
        if run_ns.is_none() || !waits || run_ns != self.run_ns {
            *self = Self { run_ns, since: None };
        }
        self.since.get_or_insert_with(Instant::now).elapsed() >= WAITS_FOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_in_time_tells_what_it_has_found() {
        assert_eq!(look_in_time(None, || 7, || panic!("it is in time")), Ok(7));
    }

    #[test]
    fn who_waits_for_the_target_is_not_waited_for() {
        for longest in [None, Some(Duration::from_millis(20))] {
            let (serve, served) = mpsc::channel();
            // Like a page that is supplied only when the target runs again.
            let outcome = look_in_time(longest, move || served.recv(), move || serve.send(1).unwrap());
            assert_eq!(outcome.map_err(|late| late.is_overdue), Err(longest.is_some()));
        }
    }
}
