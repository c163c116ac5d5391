//! Rounds in time that nobody else wants.
//!
//! While the buffers are mostly free there is no hurry, and where the targets keep all processors busy each turn of the recorder is one
//! that they do not get. So it is lent to a thread that runs only when a processor would be idle (`SCHED_IDLE`):
//!
//! ```text
//!             many events came in the last round, buffers mostly free
//!   own turn ---------------------------------------------------------> lent
//!            <---------------------------------------------------------
//!             an eighth of the buffers in use, somebody waits, nothing left, or [`STINT`] is over
//! ```
//!
//! A thread of its own, because an ordinary user's thread that has given up its precedence cannot take it back. It works in
//! slices, so that it gives the recorder back soon even if it hardly gets any time. If that took long, the machine is busy with
//! others' work too, and the recorder stays with the session's thread for [`OWN_TURNS`].
//!
//! A thread that runs last may hold a lock of its process (of its memory map, of an arena) for as long as it is not let run. So this
//! is for processes that only record, and not for the time in which one of their other threads holds a target still.

use std::time::{Duration, Instant};

use heapr_ring::sys;

use crate::recorder::Recorder;

/// A round that took this many events is followed by the next at once: they came in less time than the sleep lasts.
const EVENTS_WITHOUT_SLEEP: u64 = 50_000;
/// Fewer events than this in the last turn are not worth a thread (30 µs): half a millisecond's work.
const WORTH_LENDING: u64 = 8_000;
/// Events taken between two looks whether the recorder is wanted back: about a millisecond's work.
const SLICE_EVENTS: u64 = 16_000;
/// For how long it is lent: orders and the end of a program wait for it.
const STINT: Duration = Duration::from_millis(20);
/// A stint that took longer has been starved.
const STARVED: Duration = Duration::from_millis(100);
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

    /// Takes note of how long a stint took.
    fn note_stint(&mut self, took: Duration, now: Instant) {
        if took >= STARVED {
            self.not_before = Some(now + OWN_TURNS);
        }
    }

    fn lend(&mut self, recorder: &mut Recorder) -> Turn {
        let began = Instant::now();
        let turn = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("spare time".to_owned());
            let lent = thread.spawn_scoped(scope, || {
                // Where this is not allowed it is an ordinary thread.
                let _ = sys::yield_to_all();
                let may_keep = |recorder: &Recorder| !recorder.is_wanted_now() && began.elapsed() < STINT;
                recorder.note_lent(true);
                let mut turn = Turn { event_count: 0, is_caught_up: false };
                while may_keep(recorder) && !turn.is_caught_up {
                    let round = recorder.round_while(SLICE_EVENTS, may_keep);
                    turn.event_count += round.event_count;
                    turn.is_caught_up = round.is_whole && round.event_count < EVENTS_WITHOUT_SLEEP;
                }
                recorder.note_lent(false);
                turn
            });
            lent.ok().map(|lent| lent.join())
        });
        // Where there was no thread for it there will hardly be one at once.
        let took = if turn.is_none() { STARVED } else { began.elapsed() };
        self.note_stint(took, Instant::now());
        match turn {
            Some(Ok(turn)) => turn,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            // No memory or no room for a thread: nothing was taken, the next turn is an own one.
            None => Turn { event_count: 0, is_caught_up: false },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starved_stint_is_followed_by_own_turns_for_a_while() {
        let mut spare_time = SpareTime { is_on: true, ..SpareTime::default() };
        let now = Instant::now();
        spare_time.note_stint(STINT, now);
        assert!(spare_time.may_lend(now));
        spare_time.note_stint(STARVED, now);
        assert!(!spare_time.may_lend(now));
        assert!(!spare_time.may_lend(now + OWN_TURNS / 2));
        assert!(spare_time.may_lend(now + OWN_TURNS));
    }

    #[test]
    fn it_is_not_lent_unasked_nor_while_a_target_is_held_still() {
        assert!(!SpareTime::default().may_lend(Instant::now()));
        let held = SpareTime { is_on: true, is_held: true, ..SpareTime::default() };
        assert!(!held.may_lend(Instant::now()));
    }
}
