//! Memory that the process has given back, as the hooks of munmap and its kin tell: a list of the
//! last ranges, which each thread's level reads on from where it was.
//!
//! Without a lock: who writes claims the next place, and who reads takes a place that is not whole,
//! or has been written anew, for all of the memory.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

const ENTRIES: usize = 64;
/// A place that is being written.
const BUSY: u32 = u32::MAX;

struct Entry {
    /// The number of what it holds, plus one.
    number: AtomicU32,
    low: AtomicUsize,
    high: AtomicUsize,
}

static LIST: [Entry; ENTRIES] =
    [const { Entry { number: AtomicU32::new(0), low: AtomicUsize::new(0), high: AtomicUsize::new(0) } };
        ENTRIES];
/// How many there were so far.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Memory is about to be unmapped or to be protected from reading, or has been.
pub(crate) fn memory_goes(address: usize, bytes: usize) {
    let number = COUNT.fetch_add(1, AcqRel);
    let Some(entry) = LIST.get(number as usize % ENTRIES) else { return };
    if entry.number.swap(BUSY, AcqRel) == BUSY {
        // Somebody else writes there, who has gone round or has ended: for readers, neither is
        // whole.
        return;
    }
    entry.low.store(address, Relaxed);
    entry.high.store(address.saturating_add(bytes), Relaxed);
    let _ = entry.number.compare_exchange(BUSY, number.wrapping_add(1), AcqRel, Relaxed);
}

/// Notes that memory goes, where nothing tells which: all of it is looked at anew.
pub(crate) fn any_memory_goes() {
    memory_goes(0, usize::MAX);
}

/// How far a level has read.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Read(u32);

impl Read {
    #[inline(always)]
    pub(crate) fn is_all(self) -> bool {
        COUNT.load(Acquire) == self.0
    }

    /// Calls back with each range since. `false`: all of the memory may have been given back.
    pub(crate) fn go_on(&mut self, mut with: impl FnMut(usize, usize)) -> bool {
        let count = COUNT.load(Acquire);
        let first = core::mem::replace(&mut self.0, count);
        let new = count.wrapping_sub(first);
        if new as usize > ENTRIES / 2 {
            return false;
        }
        for number in (0..new).map(|away| first.wrapping_add(away)) {
            let Some(entry) = LIST.get(number as usize % ENTRIES) else { return false };
            let is_whole = || entry.number.load(Acquire) == number.wrapping_add(1);
            if !is_whole() {
                return false;
            }
            let (low, high) = (entry.low.load(Acquire), entry.high.load(Acquire));
            if !is_whole() {
                return false;
            }
            with(low, high);
        }
        true
    }
}
