//! The time of an event, and the conditions under which a thread may read it by the cheap
//! instruction.
//!
//! Sorted by time, the events of any address must be in the order in which it changed hands. So an
//! event's time must not be read before the loads that led to the event are done. Those are loads
//! of the program (which got the block from another thread) and of the allocator (which took over
//! what another thread had freed). The *ordered* reading waits for them. The *unordered* one does
//! not wait, and takes half the time, or no time beside other work.
//!
//! Most blocks never change hands: allocators give each thread memory of its own. So each *region*
//! of addresses has an owner, the thread that recorded there last. The owner reads the
//! unordered time, and checks after that whether it still is the owner:
//!
//! ```text
//!                 claimed
//!  no owner  ----------------->  owner thread  ---+
//!  all read  <-----------------  it reads         |  claimed by another
//!  ordered       given up        unordered     <--+
//! ```
//!
//! A thread that records an event in another owner's region claims the region, or sets it to no
//! owner (`Claims` decides which). It writes the region's word first, visible to all, and reads the
//! ordered time after that.
//!
//! Each thread checks the word *after* it has read the time (the load's address depends on the
//! time). It reads the time anew if the word is not as expected. The order holds because that load
//! is done after all loads before it, and a claim is visible before the time behind it is read. The
//! processor itself ensures both, or barriers do (`ordered_time` in `arch`; a model in heapr-ring's
//! tests). Let a thread A record an event of a block and let go of it. Let thread B then get the
//! block and record the next event.
//!
//! * A's actions after it has read its time (freeing the block; handing out the new one) are
//!   stores. No thread sees a store before the time was read. If B reads the ordered time, after
//!   the load that saw that store, B's time is the later one.
//! * If B reads the unordered time, it has found itself the region's owner after that load. A had
//!   found that the region was its own or had no owner, after A's time was read and before A let
//!   go. So B's number was written after A's check, and thus after A's time. Between that write and
//!   its unordered time B read an ordered time, which all of B's later times follow.
//! * Numbers are the kernel's thread ids, and may be reused: a thread begins after all that an
//!   earlier thread of its number has done.

use core::sync::atomic::{AtomicU8, AtomicU32, Ordering::*};

use heapr_ring::sys;
use heapr_wire::TICKS_MASK;

use crate::arch::{Late, keep_stores_before_time, wait_for_loads};
use crate::state::claims::{Claims, NOBODY};

/// Clock choice: the time stamp counter. (3 and 4 are [`heapr_wire::CLOCK_STOPPED`] and
/// [`heapr_wire::CLOCK_ENDED`].)
const TSC: u8 = 0;
/// Clock choice: CLOCK_MONOTONIC.
const MONOTONIC: u8 = 2;

/// Log2 of a region's size: 64 KiB. An allocator's memory for one thread seldom is smaller. Blocks
/// that one thread allocates and another frees (as in Node, by the thousand) lie together. With
/// pages of 4 KiB regions change hands with 19 % of Node's events, with 64 KiB with 8 %.
const REGION_SHIFT: u32 = 16;
/// Number of words for regions; several regions may share a word. More than 2^8 words help no
/// program of `bench overhead`, but they help programs with much larger heaps.
const REGION_WORDS: usize = 1 << REGION_WORDS_LOG;
const REGION_WORDS_LOG: u32 = 11;

/// The process's clock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct EventClock {
    /// The clock choice; after it the byte that is read instead if a time has its highest bit set.
    choice: [AtomicU8; 2],
    /// Number of the owner thread of each region.
    regions: Regions,
}

/// The owners' words, on cache lines of their own. Other data that the process's threads read all
/// the time must not be invalidated by a claim.
#[derive(Debug)]
#[repr(C, align(64))]
struct Regions([AtomicU32; REGION_WORDS + 1]);

/// Index of a block's region among the words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Region(usize);

impl Region {
    #[inline(always)]
    pub(crate) fn of(address: u64) -> Self {
        // Fibonacci hashing: neighbours lie far apart, and so do the heaps of glibc's arenas, 64
        // MiB each.
        let hash = (address >> REGION_SHIFT).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self((hash >> (u64::BITS - REGION_WORDS_LOG)) as usize)
    }
}

/// A level's data for reading the clock.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct View {
    /// Ticks at the session's start.
    start_ticks: u64,
    /// The thread's number, not 0.
    thread_id: u32,
    claims: Claims,
}

impl View {
    pub(crate) const fn new(thread_id: u32, start_ticks: u64) -> Self {
        Self { start_ticks, thread_id, claims: Claims::new() }
    }

    /// Notes that the thread begins its next buffer.
    pub(crate) fn next_buffer(&mut self) {
        self.claims.next_buffer();
    }

    #[inline(always)]
    fn since_start(&self, ticks: u64) -> u64 {
        ticks.wrapping_sub(self.start_ticks) & TICKS_MASK
    }
}

impl EventClock {
    pub(crate) const fn new() -> Self {
        Self {
            choice: [AtomicU8::new(TSC), AtomicU8::new(heapr_wire::CLOCK_STOPPED)],
            regions: Regions([const { AtomicU32::new(NOBODY) }; REGION_WORDS + 1]),
        }
    }

    #[inline(always)]
    fn choice(&self) -> u8 {
        let [choice, _] = &self.choice;
        choice.load(Relaxed)
    }

    /// Returns the address of the byte that says which clock is read, for the injector.
    pub(crate) const fn choice_place(&'static self) -> *const AtomicU8 {
        (&raw const self.choice).cast()
    }

    /// Switches to CLOCK_MONOTONIC, because the time stamp counter is not usable on this machine.
    /// Must be called before the first event.
    pub(crate) fn use_monotonic(&self) {
        let [choice, _] = &self.choice;
        choice.store(MONOTONIC, Relaxed);
    }

    /// True if each reading of the time is a system call.
    pub(crate) fn is_asked_of_kernel(&self) -> bool {
        self.choice() == MONOTONIC
    }

    /// True if the injector has ended the recording for good.
    pub(crate) fn is_ended(&self) -> bool {
        self.choice() == heapr_wire::CLOCK_ENDED
    }

    /// Reads the time for an event in a region. Returns `None`, without any change, unless the
    /// clock is the time stamp counter and the region is this thread's or is left without an owner.
    #[inline(always)]
    pub(crate) fn expected_ticks(&self, view: &View, region: Region) -> Option<u64> {
        // SAFETY: `late` is 0 or 1, and both arrays have one element more than `region` or the
        // choice needs.
        let look = |late: usize| unsafe {
            let owner = self.regions.0.get_unchecked(region.0.wrapping_add(late));
            let choice = self.choice.get_unchecked(late);
            (owner.load(Relaxed), choice.load(Relaxed))
        };
        let (owner, choice) = look(0);
        if choice != TSC {
            // The program may have forbidden itself to read the counter.
            return None;
        }
        let ticks = if owner == view.thread_id {
            sys::ticks_unordered()
        } else if owner == view.claims.left {
            sys::ticks_ordered()
        } else {
            return None;
        };
        (look(Late::than(ticks).none()) == (owner, TSC)).then(|| view.since_start(ticks))
    }

    /// Reads the time for an event that is to be written at `position` of the buffer, in ticks
    /// since the session's start. `region` is `None` for an event that is not of a single block.
    /// Returns `None` during a detach: some calls are already not seen, and records of the others
    /// would contradict the rest.
    #[inline(always)]
    pub(crate) fn event_ticks(&self, view: &mut View, region: Option<Region>, position: u32) -> Option<u64> {
        match region.and_then(|region| self.expected_ticks(view, region)) {
            Some(ticks) => Some(ticks),
            None => self.ordered_ticks(view, region, position),
        }
    }

    /// Slow path of [`EventClock::event_ticks`]: waits for the loads before. After that, the region
    /// is the thread's or has no owner.
    #[cold]
    #[inline(never)]
    fn ordered_ticks(&self, view: &mut View, region: Option<Region>, position: u32) -> Option<u64> {
        let owner = region.and_then(|region| self.regions.0.get(region.0));
        let fitting = if view.claims.left == NOBODY { NOBODY } else { view.thread_id };
        loop {
            match self.choice() {
                TSC => {}
                MONOTONIC => return Some(view.since_start(sys::monotonic_ns())),
                _ => return None,
            }
            // Time before a claim, if there is one.
            let mut before_ticks = None;
            if let Some(owner) = owner
                && owner.load(Relaxed) != fitting
            {
                before_ticks = (fitting != NOBODY).then(sys::ticks_ordered);
                // Visible to all threads before the time is read.
                owner.swap(fitting, SeqCst);
                keep_stores_before_time();
            }
            let ticks = sys::ticks_ordered();
            // Neither the checks that follow nor a later time is read before this time.
            wait_for_loads();
            let is_still_so = owner.is_none_or(|owner| owner.load(Relaxed) == fitting);
            if is_still_so && self.choice() == TSC {
                if let Some(before_ticks) = before_ticks {
                    view.claims.claimed(position, ticks.wrapping_sub(before_ticks));
                }
                return Some(view.since_start(ticks));
            }
        }
    }

    /// Reads the time for anything that is not an event.
    pub(crate) fn now_ticks(&self, start_ticks: u64) -> u64 {
        let ticks = match self.choice() {
            TSC => sys::ticks_ordered(),
            MONOTONIC => sys::monotonic_ns(),
            _ => return 0,
        };
        ticks.wrapping_sub(start_ticks) & TICKS_MASK
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize};

    use super::*;

    /// Returns the region with this number.
    fn in_region(number: u64) -> Option<Region> {
        Some(Region::of(0x7f00_0000_0000 + (number << REGION_SHIFT)))
    }

    fn owner(clock: &EventClock, region: Option<Region>) -> u32 {
        clock.regions.0[region.unwrap().0].load(Relaxed)
    }

    #[test]
    fn a_region_goes_to_the_thread_that_records_there() {
        let clock = EventClock::new();
        let (mut one, mut other) = (View::new(1, 0), View::new(2, 0));
        let (here, there) = (in_region(0), in_region(1));
        assert!(clock.expected_ticks(&one, here.unwrap()).is_none(), "nobody's");
        let first = clock.event_ticks(&mut one, here, 0).unwrap();
        assert_eq!((owner(&clock, here), owner(&clock, there)), (1, NOBODY));
        let second = clock.expected_ticks(&one, here.unwrap()).unwrap();
        let elsewhere = clock.event_ticks(&mut other, there, 0).unwrap();
        assert!(
            clock.expected_ticks(&one, here.unwrap()).is_some(),
            "another region's event changes nothing"
        );
        let third = clock.event_ticks(&mut other, here, 1).unwrap();
        assert_eq!(owner(&clock, here), 2);
        assert!(clock.expected_ticks(&one, here.unwrap()).is_none());
        assert!(first <= second && second <= elsewhere && elsewhere < third);
        let without = clock.event_ticks(&mut one, None, 2).unwrap();
        assert!(without > third && owner(&clock, here) == 2, "an event without a block owns nothing");
    }

    #[test]
    fn blocks_of_one_region_have_one_word() {
        let of = |address| Region::of(address).0;
        assert_eq!(of(0x7f12_3456_0000), of(0x7f12_3456_fff8));
        assert!((0..1 << 20).all(|number| of(number << REGION_SHIFT) < REGION_WORDS));
        // glibc's arenas and neighbours lie apart.
        assert!((1..64).all(|number| of(number << 26) != of(0) && of(number << REGION_SHIFT) != of(0)));
    }

    #[test]
    fn what_is_left_to_nobody_is_read_in_order_and_not_claimed() {
        let clock = EventClock::new();
        let (mut one, mut other) = (View::new(1, 0), View::new(2, 0));
        let here = in_region(0);
        clock.event_ticks(&mut one, here, 0).unwrap();
        other.claims.left = NOBODY;
        let first = clock.event_ticks(&mut other, here, 0).unwrap();
        assert_eq!(owner(&clock, here), NOBODY);
        let second = clock.expected_ticks(&other, here.unwrap()).unwrap();
        assert!(first < second && owner(&clock, here) == NOBODY);
        let third = clock.event_ticks(&mut one, here, 0).unwrap();
        assert!(second < third && owner(&clock, here) == 1, "the other thread still claims");
    }

    #[test]
    fn what_the_injector_writes_ends_all_times() {
        for word in [heapr_wire::CLOCK_STOPPED, heapr_wire::CLOCK_ENDED] {
            let clock = EventClock::new();
            let (mut one, mut other) = (View::new(1, 0), View::new(2, 0));
            let (here, there) = (in_region(0), in_region(1));
            clock.event_ticks(&mut one, here, 0).unwrap();
            clock.choice[0].store(word, Relaxed);
            assert_eq!(clock.event_ticks(&mut one, here, 0), None);
            assert_eq!(clock.event_ticks(&mut one, None, 0), None);
            assert_eq!(clock.event_ticks(&mut other, there, 0), None);
            assert_eq!(clock.is_ended(), word == heapr_wire::CLOCK_ENDED);
        }
    }

    #[test]
    fn the_monotonic_clock_has_no_owners() {
        let clock = EventClock::new();
        clock.use_monotonic();
        let mut one = View::new(1, 0);
        let before = sys::monotonic_ns();
        for _ in 0..3 {
            assert!(clock.expected_ticks(&one, in_region(0).unwrap()).is_none(), "the counter is not read");
            let now = clock.event_ticks(&mut one, in_region(0), 0).unwrap();
            assert!(now >= before && now <= sys::monotonic_ns());
        }
    }

    /// Threads hand blocks round, and each block's region holds blocks of other threads, too. Each
    /// thread notes a time before it lets go of a block, and one after it has taken a block over.
    #[test]
    fn times_follow_what_changes_hands() {
        const THREADS: usize = 3;
        const BLOCKS: usize = 8;
        const ROUNDS: usize = 100_000;
        struct Block {
            turn: AtomicUsize,
            let_go_ticks: AtomicU64,
        }
        static CLOCK: EventClock = EventClock::new();
        static TABLE: [Block; BLOCKS] =
            [const { Block { turn: AtomicUsize::new(0), let_go_ticks: AtomicU64::new(0) } }; BLOCKS];
        let threads = [0, 1, 2].map(|number| {
            std::thread::spawn(move || {
                let mut view = View::new(number as u32 + 1, 0);
                let (mut owned, mut position, mut looks) = (0_usize, 0, 0_u32);
                while TABLE.iter().any(|block| block.turn.load(Relaxed) < ROUNDS) {
                    for (index, block) in TABLE.iter().enumerate() {
                        let turn = block.turn.load(Acquire);
                        // A block stays with a thread for four rounds.
                        if turn >= ROUNDS || turn / 4 % THREADS != number {
                            looks += 1;
                            // The other threads may have no processor.
                            if looks.is_multiple_of(1 << 12) {
                                std::thread::yield_now();
                            }
                            continue;
                        }
                        let region = in_region(index as u64 / 2);
                        let let_go = block.let_go_ticks.load(Relaxed);
                        owned += usize::from(owner(&CLOCK, region) == view.thread_id);
                        let taken = CLOCK.event_ticks(&mut view, region, position).unwrap();
                        assert!(taken >= let_go, "block {index}: {taken} before {let_go}");
                        let ticks = CLOCK.event_ticks(&mut view, region, position + 1).unwrap();
                        assert!(ticks >= taken);
                        position = (position + 2) % 4096;
                        if position == 0 {
                            view.next_buffer();
                        }
                        block.let_go_ticks.store(ticks, Relaxed);
                        block.turn.store(turn + 1, Release);
                    }
                }
                owned
            })
        });
        let owned: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert!(owned > ROUNDS / 8, "a region was the thread's {owned} times");
    }
}
