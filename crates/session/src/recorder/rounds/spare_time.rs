//! Rounds of the recorder in spare processor time.
//!
//! While the buffers are mostly free there is no hurry. Where the targets keep all processors busy,
//! each turn of the recorder takes processor time from them. So the recorder is lent to a thread
//! that runs only when a processor would be idle (`SCHED_IDLE`):
//!
//! ```text
//!             many events came in the last round, buffers mostly free
//!   own turn ---------------------------------------------------------> lent
//!            <---------------------------------------------------------
//!             an eighth of the buffers in use, a waiter, nothing left, or [`STINT`] is over
//! ```
//!
//! A separate thread is used, because a thread that has lowered its priority cannot always raise it
//! again. It works in slices, so that it gives the recorder back soon even with little processor
//! time. If a stint took long, the machine is busy with other work too, and the recorder stays with
//! the session's thread for [`OWN_TURNS`].
//!
//! The same pause follows if the thread was preempted again and again after short runs. Threads
//! that wake each other all the time leave only scraps, and each wake-up that finds a busy
//! processor costs both sides an interrupt. Node, preempted after 22 µs on average: 1.52 s of
//! processor time in spare time and 1.41 in own turns, 21 rounds. The wall time was the same, with
//! half as many waits for locks. redis, preempted after 400 µs: 2.20 s of its client's time and
//! 2.76.
//!
//! **Where no processor is ever idle** a `SCHED_IDLE` thread gets three thousandths of one, so a
//! millisecond's work takes half a second. The targets would run out of buffers meanwhile, and wait
//! for it. So the session's thread gives it ordinary priority once it counts as [`STARVED`].
//! Without the right to raise priorities the thread is nice by [`NICENESS`] instead.
//!
//! Measured with 400 processes in a second beside two that only calculate, on two processors. A
//! thread that stays at the lowest priority: 12 s in place of 1.9. Niceness 19: 4 s, and once lost
//! stacks; 10 and 5: as fast as own turns. redis, 9 rounds: 5.59 s at lowest priority, 5.69 nice by
//! 15, 5.77 by 10, 6.30 by 5, 5.99 in own turns.
//!
//! A thread at the lowest priority may hold a lock of its process (memory map, arena) for as long
//! as it gets no processor. So this is only for processes that do nothing but record. It is
//! suspended while another thread of such a process holds a target still.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use heapr_ring::sys::{self, Precedence};

use crate::recorder::Recorder;

/// Number of events in a round after which the next round follows at once: the events came in less
/// time than the sleep lasts.
const EVENTS_WITHOUT_SLEEP: u64 = 50_000;
/// Least number of events of the last turn for which a thread (30 µs) pays: half a millisecond's
/// work.
const WORTH_LENDING: u64 = 8_000;
/// Number of events between two checks whether the recorder is wanted back: about a millisecond's
/// work.
const SLICE_EVENTS: u64 = 16_000;
/// Longest time for which the recorder is lent: orders and the end of a program wait for it.
const STINT: Duration = Duration::from_millis(20);
/// Duration of a stint above which its thread counts as starved.
const STARVED: Duration = Duration::from_millis(100);
/// Niceness of the thread where its priority could not be raised again: a tenth of the share of
/// others.
const NICENESS: i32 = 10;
/// Least average run between two preemptions for a stint to be worth it.
const SLICE_MIN: Duration = Duration::from_micros(100);
/// Least number of preemptions for a meaningful average.
const SLICES_MIN: u32 = 50;
/// Time for which the recorder is not lent after such a stint.
const OWN_TURNS: Duration = Duration::from_secs(1);

/// Result of one turn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Number of events read.
    pub(crate) event_count: u64,
    /// True if so few events are left that it pays to wait for more.
    pub(crate) is_caught_up: bool,
}

/// Decides when to lend the recorder, and lends it.
#[derive(Debug, Default)]
pub(crate) struct SpareTime {
    /// True if lending is enabled.
    pub(crate) is_on: bool,
    /// True while another thread must not wait for a thread of this process.
    pub(crate) is_held: bool,
    /// Number of events read in the last turn.
    last_count: u64,
    not_before: Option<Instant>,
}

impl SpareTime {
    /// Runs one round, or several in spare time.
    pub(crate) fn turn(&mut self, recorder: &mut Recorder) -> Turn {
        let is_worth_it = self.last_count >= WORTH_LENDING;
        let turn = if is_worth_it && self.may_lend(Instant::now()) && !recorder.is_wanted_now() {
            self.lend(recorder)
        } else {
            let event_count = recorder.round();
            Turn { event_count, is_caught_up: event_count < EVENTS_WITHOUT_SLEEP }
        };
        self.last_count = turn.event_count;
        turn
    }

    fn may_lend(&self, now: Instant) -> bool {
        self.is_on && !self.is_held && self.not_before.is_none_or(|instant| now >= instant)
    }

    /// Pauses lending if a stint took too long or was preempted too often.
    fn note_stint(&mut self, took: Duration, scheduling: Option<Scheduling>, now: Instant) {
        if took >= STARVED || scheduling.is_some_and(|scheduling| scheduling.is_in_scraps()) {
            self.not_before = Some(now + OWN_TURNS);
        }
    }

    fn lend(&mut self, recorder: &mut Recorder) -> Turn {
        let began = Instant::now();
        let thread_id = AtomicU32::new(0);
        let (end, has_ended) = mpsc::channel::<()>();
        let turn = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("spare time".to_owned());
            let thread_id = &thread_id;
            let lent = thread.spawn_scoped(scope, move || {
                let _end = end;
                thread_id.store(sys::thread_id(), Relaxed);
                let may_come_back = step_back();
                let stint = stint(recorder, began);
                if may_come_back {
                    // The thread may be starved on its way out, too.
                    let _ = sys::set_precedence(0, Precedence::Ordinary);
                }
                stint
            });
            let lent = lent.ok()?;
            // Repeated, because the first time the thread may not have lowered its priority yet.
            while has_ended.recv_timeout(STARVED) == Err(RecvTimeoutError::Timeout) {
                let thread_id = thread_id.load(Relaxed);
                if thread_id != 0 {
                    let _ = sys::set_precedence(thread_id, Precedence::Ordinary);
                }
            }
            Some(lent.join())
        });
        // If no thread could be started, one will hardly start soon.
        let took = if turn.is_none() { STARVED } else { began.elapsed() };
        let scheduling = turn.as_ref().and_then(|turn| turn.as_ref().ok()?.1);
        self.note_stint(took, scheduling, Instant::now());
        match turn {
            Some(Ok((turn, _))) => turn,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            // No memory or no room for a thread: no event was read, and the next turn is an own
            // one.
            None => Turn { event_count: 0, is_caught_up: false },
        }
    }
}

/// Lowers the calling thread's priority. Returns whether it can be raised again.
fn step_back() -> bool {
    // Lowering the niceness needs the same right of the kernel as leaving `SCHED_IDLE`.
    let may_come_back = rustix::process::nice(1).and_then(|_| rustix::process::nice(-1)).is_ok();
    // Without the right the thread stays an ordinary one.
    if may_come_back {
        let _ = sys::set_precedence(0, Precedence::Last);
    } else {
        let _ = rustix::process::nice(NICENESS - 1);
    }
    may_come_back
}

/// Runs rounds in the calling thread until the recorder is wanted back.
fn stint(recorder: &mut Recorder, began: Instant) -> (Turn, Option<Scheduling>) {
    let may_keep = |recorder: &Recorder| !recorder.is_wanted_now() && began.elapsed() < STINT;
    recorder.note_lent(true);
    let mut turn = Turn { event_count: 0, is_caught_up: false };
    while may_keep(recorder) && !turn.is_caught_up {
        let round = recorder.round_while(SLICE_EVENTS, may_keep);
        turn.event_count += round.event_count;
        turn.is_caught_up = round.is_whole && round.event_count < EVENTS_WITHOUT_SLEEP;
    }
    recorder.note_lent(false);
    (turn, Scheduling::of_this_thread())
}

/// Kernel's account of a thread's scheduling since its start.
#[derive(Debug, Clone, Copy)]
struct Scheduling {
    run: Duration,
    /// Number of times that the thread was given a processor.
    slice_count: u32,
}

impl Scheduling {
    /// Reads the account of the calling thread; `None` if the kernel does not provide it.
    fn of_this_thread() -> Option<Self> {
        // Nanoseconds on a processor, nanoseconds of waiting for one, time slices.
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut numbers = text.split_ascii_whitespace();
        let run = Duration::from_nanos(numbers.next()?.parse().ok()?);
        Some(Self { run, slice_count: numbers.nth(1)?.parse().ok()? })
    }

    /// Whether the average slice is too short to be worth the switches.
    fn is_in_scraps(self) -> bool {
        self.slice_count >= SLICES_MIN && self.run < SLICE_MIN * self.slice_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starved_stint_is_followed_by_own_turns_for_a_while() {
        let mut spare_time = SpareTime { is_on: true, ..SpareTime::default() };
        let now = Instant::now();
        spare_time.note_stint(STINT, None, now);
        assert!(spare_time.may_lend(now));
        spare_time.note_stint(STARVED, None, now);
        assert!(!spare_time.may_lend(now));
        assert!(!spare_time.may_lend(now + OWN_TURNS / 2));
        assert!(spare_time.may_lend(now + OWN_TURNS));
    }

    #[test]
    fn a_stint_in_scraps_is_followed_by_own_turns_for_a_while() {
        let now = Instant::now();
        let lends_after = |run_us, slice_count| {
            let mut spare_time = SpareTime { is_on: true, ..SpareTime::default() };
            let scheduling = Scheduling { run: Duration::from_micros(run_us), slice_count };
            spare_time.note_stint(STINT, Some(scheduling), now);
            assert!(spare_time.may_lend(now + OWN_TURNS));
            spare_time.may_lend(now)
        };
        assert!(!lends_after(8_000, 350), "as beside Node");
        assert!(lends_after(6_000, 15), "as beside redis");
        assert!(lends_after(200, 20), "too few to tell");
    }

    #[test]
    fn the_kernel_tells_how_a_thread_was_let_run() {
        // The kernel updates the run time when it preempts the thread.
        std::thread::sleep(Duration::from_millis(1));
        let scheduling = Scheduling::of_this_thread().expect("the kernel has schedstat");
        assert!(scheduling.slice_count > 0 && scheduling.run > Duration::ZERO, "{scheduling:?}");
    }

    #[test]
    fn it_is_not_lent_unasked_nor_while_a_target_is_held_still() {
        assert!(!SpareTime::default().may_lend(Instant::now()));
        let held = SpareTime { is_on: true, is_held: true, ..SpareTime::default() };
        assert!(!held.may_lend(Instant::now()));
    }
}
