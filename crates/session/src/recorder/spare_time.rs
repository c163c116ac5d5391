//! Rounds in time that nobody else wants.
//!
//! While the buffers are mostly free there is no hurry, and where the targets keep all processors
//! busy each turn of the recorder is one that they do not get. So it is lent to a thread that runs
//! only when a processor would be idle (`SCHED_IDLE`):
//!
//! ```text
//!             many events came in the last round, buffers mostly free
//!   own turn ---------------------------------------------------------> lent
//!            <---------------------------------------------------------
//!             an eighth of the buffers in use, somebody waits, nothing left, or [`STINT`] is over
//! ```
//!
//! A thread of its own, because one that has given up its precedence cannot always take it back. It
//! works in slices, so that it gives the recorder back soon even if it hardly gets any time. If
//! that took long, the machine is busy with others' work too, and the recorder stays with the
//! session's thread for [`OWN_TURNS`]. So it does if the thread was put aside again and again after
//! a moment's work: threads that wake each other all the time leave only scraps, and each wake-up
//! that finds a processor at work in place of an idle one costs both sides an interrupt. (Node, put
//! aside after 22 µs on average: 1.52 s of processor time in spare time and 1.41 in own turns, 21
//! rounds, the wall time as long; half as many waits for locks. redis, after 400 µs: 2.20 s of its
//! client's time and 2.76.)
//!
//! **Where no processor is ever idle** a thread that runs last gets three thousandths of one, and a
//! millisecond's work takes it half a second: the targets would run out of buffers meanwhile, and
//! wait for it. So the session's thread lets it run as any other once it counts as [`STARVED`]. Who
//! may not raise priorities cannot do that; there it is nice by [`NICENESS`] in place of running
//! last. (400 processes in a second beside two that only calculate, on two processors: 12 s in
//! place of 1.9 by a thread that runs last and stays so, 4 s and once stacks lost with a niceness
//! of 19, as fast as with own turns with 10 and with 5. redis, 9 rounds: 5.59 s running last, 5.69
//! nice by 15, 5.77 by 10, 6.30 by 5, 5.99 in own turns.)
//!
//! A thread that runs last may hold a lock of its process (of its memory map, of an arena) for as
//! long as it is not let run. So this is for processes that only record, and not for the time in
//! which one of their other threads holds a target still.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use heapr_ring::sys::{self, Precedence};

use crate::recorder::Recorder;

/// A round that took this many events is followed by the next at once: they came in less time than
/// the sleep lasts.
const EVENTS_WITHOUT_SLEEP: u64 = 50_000;
/// Fewer events than this in the last turn are not worth a thread (30 µs): half a millisecond's
/// work.
const WORTH_LENDING: u64 = 8_000;
/// Events taken between two looks whether the recorder is wanted back: about a millisecond's work.
const SLICE_EVENTS: u64 = 16_000;
/// For how long it is lent: orders and the end of a program wait for it.
const STINT: Duration = Duration::from_millis(20);
/// A stint that takes longer is starved.
const STARVED: Duration = Duration::from_millis(100);
/// How nice the thread is where it could not be let run as any other later: it gets a tenth of what
/// others get.
const NICENESS: i32 = 10;
/// On average the thread ran so long between being put aside, or the stint is worth nothing.
const SLICE_MIN: Duration = Duration::from_micros(100);
/// How often it must have been put aside for an average.
const SLICES_MIN: u32 = 50;
/// How long the recorder is not lent after that.
const OWN_TURNS: Duration = Duration::from_secs(1);

/// What was done in one go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// Events taken.
    pub(crate) event_count: u64,
    /// So few were left in the end that it pays to wait for more.
    pub(crate) is_caught_up: bool,
}

/// Lends the recorder.
#[derive(Debug, Default)]
pub(crate) struct SpareTime {
    /// It is wanted at all.
    pub(crate) is_on: bool,
    /// Somebody must not wait for a thread of this process now.
    pub(crate) is_held: bool,
    /// Events taken by the last turn.
    last_count: u64,
    not_before: Option<Instant>,
}

impl SpareTime {
    /// One round, or several in spare time.
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

    /// Takes note of how long a stint took, and of how its thread was let run.
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
                    // It may be starved on its way out, too.
                    let _ = sys::set_precedence(0, Precedence::Ordinary);
                }
                stint
            });
            let lent = lent.ok()?;
            // Again and again: the first time it may not have stepped back yet.
            while has_ended.recv_timeout(STARVED) == Err(RecvTimeoutError::Timeout) {
                let thread_id = thread_id.load(Relaxed);
                if thread_id != 0 {
                    let _ = sys::set_precedence(thread_id, Precedence::Ordinary);
                }
            }
            Some(lent.join())
        });
        // Where there was no thread for it there will hardly be one at once.
        let took = if turn.is_none() { STARVED } else { began.elapsed() };
        let scheduling = turn.as_ref().and_then(|turn| turn.as_ref().ok()?.1);
        self.note_stint(took, scheduling, Instant::now());
        match turn {
            Some(Ok((turn, _))) => turn,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            // No memory or no room for a thread: nothing was taken, the next turn is an own one.
            None => Turn { event_count: 0, is_caught_up: false },
        }
    }
}

/// Gives up the calling thread's precedence. Returns whether it can be given back.
fn step_back() -> bool {
    // What needs a right is to be less nice, and to run last no more: the kernel asks for the same
    // right.
    let may_come_back = rustix::process::nice(1).and_then(|_| rustix::process::nice(-1)).is_ok();
    // Where it is not allowed it stays an ordinary thread.
    if may_come_back {
        let _ = sys::set_precedence(0, Precedence::Last);
    } else {
        let _ = rustix::process::nice(NICENESS - 1);
    }
    may_come_back
}

/// The calling thread's rounds until the recorder is wanted back.
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

/// How the kernel has let a thread run since its start.
#[derive(Debug, Clone, Copy)]
struct Scheduling {
    run: Duration,
    /// How often it was given a processor.
    slice_count: u32,
}

impl Scheduling {
    /// `None`: the kernel does not say.
    fn of_this_thread() -> Option<Self> {
        // Nanoseconds on a processor, nanoseconds of waiting for one, time slices.
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let mut numbers = text.split_ascii_whitespace();
        let run = Duration::from_nanos(numbers.next()?.parse().ok()?);
        Some(Self { run, slice_count: numbers.nth(1)?.parse().ok()? })
    }

    /// Whether the slices were hardly worth the switches between them.
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
        // What it has run is counted when it is put aside.
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
