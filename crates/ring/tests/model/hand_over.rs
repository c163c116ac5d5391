//! Order of the events of one block that changes hands, over the stores that each thread may see on
//! a weakly ordered processor. The protocol is that of the agent's `event_clock`, with one region.
//!
//! The counter is a word that each reading increments, so that times follow its order. A model runs
//! a thread's steps in their order, and lets it see old values. So a reading that the processor may
//! make early, before the load that led to the event, is made before that load here. An acquire
//! stands for "no later access before it", a release for "all earlier accesses are visible". What
//! the processor's folder places is in [`Barriers`]; tests take each of them away in turn, and
//! expect that the order breaks.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};
use loom::thread;

/// Barriers of a processor's folder.
#[derive(Debug, Clone, Copy)]
struct Barriers {
    /// Between all earlier loads and the check of the owner (`Late::than`).
    before_check: bool,
    /// Between a claim and the time behind it (`keep_stores_before_time`).
    behind_claim: bool,
    /// Whether the check is made at all, behind the time.
    checks: bool,
}

/// The barriers that both folders have, or that the processor needs none for.
const ALL: Barriers = Barriers { before_check: true, behind_claim: true, checks: true };

struct Clock {
    counter: AtomicU64,
    owner: AtomicU32,
    /// Word by which the block is handed over; 0: it is not.
    slot: AtomicU64,
}

impl Clock {
    fn new(owner: u32) -> Self {
        Self { counter: AtomicU64::new(1), owner: AtomicU32::new(owner), slot: AtomicU64::new(0) }
    }

    /// Time that thread `me` reads before what leads to its event, if it owns the region.
    fn early_ticks(&self, me: u32) -> Option<u64> {
        (self.owner.load(Relaxed) == me).then(|| self.counter.fetch_add(1, Acquire))
    }

    /// Time of an event of thread `me`, as `EventClock::event_ticks` reads it: the early one, if
    /// the region still is its own.
    fn ticks(&self, me: u32, early_ticks: Option<u64>, barriers: Barriers) -> u64 {
        if let Some(ticks) = early_ticks {
            if barriers.before_check {
                fence(Acquire);
            }
            if !barriers.checks || self.owner.load(Relaxed) == me {
                return ticks;
            }
        }
        loop {
            if self.owner.load(Relaxed) != me {
                self.owner.swap(me, Relaxed);
            }
            // Without the barrier the claim becomes visible behind the time.
            let visible = if barriers.behind_claim { AcqRel } else { Acquire };
            let ticks = self.counter.fetch_add(1, visible);
            if self.owner.load(Relaxed) == me {
                return ticks;
            }
        }
    }
}

/// Thread 1 records an event and hands the block to thread 2, which records the next one. With
/// `claims_first` thread 2 has recorded an event of the region before.
fn hand_over(first_owner: u32, claims_first: bool, barriers: Barriers) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let clock = Arc::new(Clock::new(first_owner));
        let giver = {
            let clock = Arc::clone(&clock);
            thread::spawn(move || {
                let early_ticks = clock.early_ticks(1);
                let ticks = clock.ticks(1, early_ticks, barriers);
                // A program hands a block over with what it has written to it.
                clock.slot.store(ticks, Release);
            })
        };
        if claims_first {
            clock.ticks(2, None, barriers);
        }
        let early_ticks = clock.early_ticks(2);
        // The taker follows an address, which orders no other load of its own.
        let given = clock.slot.load(Relaxed);
        if given != 0 {
            let taken = clock.ticks(2, early_ticks, barriers);
            assert!(taken > given, "the block was taken at {taken} and given at {given}");
        }
        giver.join().unwrap();
    });
}

#[test]
fn a_block_is_given_before_it_is_taken() {
    for first_owner in [0, 1, 2] {
        hand_over(first_owner, false, ALL);
        hand_over(first_owner, true, ALL);
    }
}

#[test]
#[should_panic(expected = "the block was taken at")]
fn without_the_check_behind_the_time_the_order_breaks() {
    hand_over(2, false, Barriers { checks: false, ..ALL });
}

#[test]
#[should_panic(expected = "the block was taken at")]
fn without_a_barrier_before_the_check_an_old_owner_is_seen() {
    hand_over(2, false, Barriers { before_check: false, ..ALL });
}

#[test]
#[should_panic(expected = "the block was taken at")]
fn without_a_barrier_behind_a_claim_the_time_is_read_before_it() {
    hand_over(1, true, Barriers { behind_claim: false, ..ALL });
}
