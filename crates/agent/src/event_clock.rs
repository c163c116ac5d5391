//! The time of an event, and which thread may read it the cheap way.
//!
//! Sorted by time, the events of any address must be in the order in which it changed hands. So an event's time must not be read before
//! the loads that led to it are done: those of the program (which got the block from another thread), and those of the allocator
//! (which took over what another thread had freed). `rdtscp` waits for them, `rdtsc` does not, and takes half the time (20 and 10 ns), or
//! none beside other work. In many programs with several threads one of them allocates nearly all, as in Node.
//!
//! One thread may be the clock's *owner*. It reads the unordered time and looks then whether it still is the owner:
//!
//! ```text
//!  word = 0, shared: all read rdtscp
//!     |  ^
//!     |  | an event of another thread, before it takes its time
//!     v  |
//!  word = owner's number : it reads rdtsc        (tried by a thread when it takes its next buffer)
//! ```
//!
//! Each thread compares the word with what it expects *after* it has read the time (the load's address depends on the time), and takes
//! the time anew if the word is another. Why the order holds (loads are done in program order on x86-64, and so are stores):
//!
//! * The owner still found itself named. So all loads before, its allocator's too, come before the store of the thread that ends its
//!   ownership, and have seen nothing of what that thread or others did under times that they read after that store.
//! * A thread found the word shared. So it read its time before any later owner's number could be seen, and that owner reads its first
//!   time after its number could be.
//! * What the owner does after it has read a time (freeing the block; handing out the new one) is a store, which nobody sees before the
//!   time was read. Others read theirs after the load that saw it.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};

use heapr_ring::sys;
use heapr_wire::TICKS_MASK;

use crate::x86_64::{load_after, wait_for_loads};

/// Clock choice: the time stamp counter. (3 and 4 are [`heapr_wire::CLOCK_STOPPED`] and [`heapr_wire::CLOCK_ENDED`].)
const TSC: u8 = 0;
/// Clock choice: CLOCK_MONOTONIC.
const MONOTONIC: u8 = 2;

/// The word of a time stamp counter without an owner.
const SHARED: u64 = TSC as u64;
/// The owner's number begins here; the clock choice lies below.
const OWNER_SHIFT: u32 = 8;

/// Buffers for which a thread does not try to own the clock, at most, after others have ended its ownership again and again.
/// Each try costs every thread that allocates a few cache misses: with this less than one in a hundred thousand events.
const WAIT_MAX: u8 = 63;

/// The process's clock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct EventClock {
    /// Clock choice in the lowest byte, owner's number above it.
    word: AtomicU64,
    /// What `load_after` would read if a time had its highest bit set.
    _after_word: u64,
}

/// What a level of a thread knows of the clock. All zero: nothing, and it reads the ordered time.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct View {
    /// The clock's word as it should be.
    expected: u64,
    /// The word that names this thread; 0: it has no number yet.
    own: u64,
    /// Ticks at the session's start.
    start_ticks: u64,
    /// Buffers until the next try to become the owner, and how many it was at the last.
    wait: u8,
    last_wait: u8,
}

impl View {
    /// Of a thread with this number (not 0).
    pub(crate) fn begin(&mut self, clock: &EventClock, thread_id: u32, start_ticks: u64) {
        *self = Self {
            // Whoever owns the clock is driven out; where it is no time stamp counter, that is not read even once.
            expected: clock.word.load(Relaxed) & u64::from(u8::MAX),
            own: u64::from(thread_id) << OWNER_SHIFT,
            start_ticks,
            wait: 0,
            last_wait: 0,
        };
    }
}

impl EventClock {
    pub(crate) const fn new() -> Self {
        Self { word: AtomicU64::new(SHARED), _after_word: 0 }
    }

    /// The byte that says which clock is read, for the injector.
    pub(crate) const fn choice(&'static self) -> *const AtomicU8 {
        // The lowest byte comes first.
        (&raw const self.word).cast()
    }

    /// Turns to CLOCK_MONOTONIC: the time stamp counter is no clock here. Called before the first event.
    pub(crate) fn use_monotonic(&self) {
        self.word.store(u64::from(MONOTONIC), Relaxed);
    }

    /// Whether each time is a system call.
    pub(crate) fn is_asked_of_kernel(&self) -> bool {
        self.word.load(Relaxed) as u8 == MONOTONIC
    }

    /// Whether the injector has ended the recording for good.
    pub(crate) fn is_ended(&self) -> bool {
        self.word.load(Relaxed) as u8 == heapr_wire::CLOCK_ENDED
    }

    /// The time for an event, if the clock is a time stamp counter and is owned as the thread knows it; else nothing was changed.
    #[inline(always)]
    pub(crate) fn expected_ticks(&self, view: &View) -> Option<u64> {
        let expected = view.expected;
        let ticks = if expected > u64::from(u8::MAX) {
            sys::ticks_unordered()
        } else if expected == SHARED {
            sys::ticks_ordered()
        } else {
            return None;
        };
        let is_as_expected = load_after(&self.word, ticks) == expected;
        is_as_expected.then(|| ticks.wrapping_sub(view.start_ticks) & TICKS_MASK)
    }

    /// The time for an event, in ticks since the session's start. `None`: a detach is under way, and some calls go unseen already.
    /// What is recorded of the others would contradict the rest.
    #[inline(always)]
    pub(crate) fn event_ticks(&self, view: &mut View) -> Option<u64> {
        match self.expected_ticks(view) {
            Some(ticks) => Some(ticks),
            None => self.look_again(view),
        }
    }

    /// The clock is not as expected: ends another thread's ownership, and takes the time anew.
    #[cold]
    #[inline(never)]
    fn look_again(&self, view: &mut View) -> Option<u64> {
        loop {
            let word = self.word.load(Relaxed);
            let ticks = match word as u8 {
                TSC => {
                    let is_ours = word == SHARED || word == view.own;
                    // Acquire and Release: this thread's stores that follow are seen after this one.
                    if !is_ours && self.word.compare_exchange(word, SHARED, AcqRel, Relaxed).is_err() {
                        continue;
                    }
                    view.expected = if is_ours { word } else { SHARED };
                    let ticks = sys::ticks_ordered();
                    wait_for_loads();
                    if self.word.load(Relaxed) != view.expected {
                        continue;
                    }
                    ticks
                }
                MONOTONIC => {
                    view.expected = word;
                    sys::monotonic_ns()
                }
                _ => return None,
            };
            return Some(ticks.wrapping_sub(view.start_ticks) & TICKS_MASK);
        }
    }

    /// The time for anything that is not an event.
    pub(crate) fn now_ticks(&self, start_ticks: u64) -> u64 {
        let ticks = match self.word.load(Relaxed) as u8 {
            TSC => sys::ticks_ordered(),
            MONOTONIC => sys::monotonic_ns(),
            _ => return 0,
        };
        ticks.wrapping_sub(start_ticks) & TICKS_MASK
    }

    /// A thread begins its next buffer: it becomes the owner if nobody is and it is worth a try.
    pub(crate) fn try_to_own(&self, view: &mut View) {
        if view.expected != SHARED {
            view.last_wait = 0;
            return;
        }
        if let Some(left) = view.wait.checked_sub(1) {
            view.wait = left;
            return;
        }
        view.wait = view.last_wait;
        view.last_wait = view.last_wait.wrapping_mul(2).wrapping_add(1).min(WAIT_MAX);
        if view.own != 0 && self.word.compare_exchange(SHARED, view.own, AcqRel, Relaxed).is_ok() {
            // No time is read before the others can see whose it is.
            wait_for_loads();
            view.expected = view.own;
        }
    }

    /// No thread is the owner any more: the one that was may be of another process (a fork).
    pub(crate) fn disown(&self) {
        let word = self.word.load(Relaxed);
        if word as u8 == TSC {
            // Should it fail, another thread has ended it, or the injector has ended all.
            let _ = self.word.compare_exchange(word, SHARED, AcqRel, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(clock: &EventClock, thread_id: u32) -> View {
        let mut view = View { expected: 0, own: 0, start_ticks: 0, wait: 0, last_wait: 0 };
        view.begin(clock, thread_id, 0);
        view
    }

    #[test]
    fn another_threads_event_ends_an_ownership() {
        let clock = EventClock::new();
        let (mut one, mut other) = (view(&clock, 1), view(&clock, 2));
        clock.try_to_own(&mut one);
        assert_eq!(one.expected, one.own);
        let first = clock.event_ticks(&mut one).unwrap();
        assert_eq!(one.expected, one.own, "its own events do not");
        let second = clock.event_ticks(&mut other).unwrap();
        assert_eq!(clock.word.load(Relaxed), SHARED);
        let third = clock.event_ticks(&mut one).unwrap();
        assert_eq!(one.expected, SHARED);
        assert!(first < second && second < third, "{first} {second} {third}");
        clock.try_to_own(&mut other);
        assert_eq!(other.expected, other.own);
        clock.try_to_own(&mut one);
        assert_eq!(one.expected, SHARED, "while another owns it nobody becomes the owner");
    }

    #[test]
    fn whoever_is_driven_out_again_and_again_tries_less_often() {
        let clock = EventClock::new();
        let (mut one, mut other) = (view(&clock, 1), view(&clock, 2));
        let mut tries = 0;
        for _ in 0..1_000 {
            clock.try_to_own(&mut one);
            clock.event_ticks(&mut one).unwrap();
            tries += usize::from(one.expected == one.own);
            clock.event_ticks(&mut other).unwrap();
            clock.event_ticks(&mut one).unwrap();
        }
        assert!((15..30).contains(&tries), "{tries}");
        // Alone again, it owns the clock within so many buffers, and starts anew.
        for _ in 0..=2 * usize::from(WAIT_MAX) {
            clock.try_to_own(&mut one);
        }
        assert_eq!((one.expected, one.last_wait), (one.own, 0));
    }

    #[test]
    fn what_the_injector_writes_ends_all_times() {
        for word in [heapr_wire::CLOCK_STOPPED, heapr_wire::CLOCK_ENDED] {
            let clock = EventClock::new();
            let (mut one, mut other) = (view(&clock, 1), view(&clock, 2));
            clock.try_to_own(&mut one);
            // As the injector does: the lowest byte alone.
            clock.word.store(clock.word.load(Relaxed) & !0xff | u64::from(word), Relaxed);
            assert_eq!((clock.event_ticks(&mut one), clock.event_ticks(&mut other)), (None, None));
            clock.disown();
            assert_eq!(clock.event_ticks(&mut one), None);
            assert_eq!(clock.is_ended(), word == heapr_wire::CLOCK_ENDED);
        }
    }

    #[test]
    fn the_monotonic_clock_has_no_owner() {
        let clock = EventClock::new();
        clock.use_monotonic();
        let mut one = view(&clock, 1);
        assert_eq!(one.expected, u64::from(MONOTONIC));
        let before = sys::monotonic_ns();
        for _ in 0..3 {
            clock.try_to_own(&mut one);
            let now = clock.event_ticks(&mut one).unwrap();
            assert!(now >= before && now <= sys::monotonic_ns());
        }
    }

    /// Two threads hand a block to and fro; each notes a time before it lets go and one after it has taken over.
    #[test]
    fn times_follow_what_changes_hands() {
        use std::sync::atomic::AtomicUsize;
        const ROUNDS: usize = 100_000;
        static CLOCK: EventClock = EventClock::new();
        static TURN: AtomicUsize = AtomicUsize::new(0);
        static LET_GO_TICKS: AtomicU64 = AtomicU64::new(0);
        let threads = [0, 1].map(|number| {
            std::thread::spawn(move || {
                let mut view = view(&CLOCK, number as u32 + 1);
                let mut owned = 0_usize;
                for round in (number..ROUNDS).step_by(2) {
                    let mut looks = 0_u32;
                    while TURN.load(Acquire) != round {
                        looks += 1;
                        // The other thread may have no processor.
                        if looks.is_multiple_of(1 << 10) {
                            std::thread::yield_now();
                        }
                    }
                    if round % 16 < 2 {
                        view.wait = 0;
                        CLOCK.try_to_own(&mut view);
                    }
                    let let_go = LET_GO_TICKS.load(Relaxed);
                    let taken = CLOCK.event_ticks(&mut view).unwrap();
                    assert!(taken >= let_go, "round {round}: {taken} before {let_go}");
                    owned += usize::from(view.expected == view.own);
                    let ticks = CLOCK.event_ticks(&mut view).unwrap();
                    LET_GO_TICKS.store(ticks, Relaxed);
                    TURN.store(round + 1, Release);
                }
                owned
            })
        });
        let owned: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(owned > ROUNDS / 32, "the clock was owned {owned} times");
    }
}
