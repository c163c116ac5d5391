//! Ranges that the process has unmapped, as reported by the hooks of munmap and similar calls. The
//! list has the last ranges, and each thread's level reads it from its last position on.
//!
//! The list has no lock. A writer claims the next entry. A reader that meets an incomplete or
//! overwritten entry assumes that all memory was unmapped.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

const ENTRIES: usize = 64;
/// Number of an entry that is being written.
const BUSY: u32 = u32::MAX;

struct Entry {
    /// Number of the entry's range, plus one.
    number: AtomicU32,
    low: AtomicUsize,
    high: AtomicUsize,
}

static LIST: [Entry; ENTRIES] =
    [const { Entry { number: AtomicU32::new(0), low: AtomicUsize::new(0), high: AtomicUsize::new(0) } };
        ENTRIES];
/// Number of ranges so far.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// Notes memory that is about to be unmapped or protected from reading, or has been.
pub(crate) fn memory_goes(address: usize, bytes: usize) {
    let number = COUNT.fetch_add(1, AcqRel);
    let Some(entry) = LIST.get(number as usize % ENTRIES) else { return };
    if entry.number.swap(BUSY, AcqRel) == BUSY {
        // Another thread writes this entry and is a whole round late, or has ended. Readers take
        // neither entry for complete.
        return;
    }
    entry.low.store(address, Relaxed);
    entry.high.store(address.saturating_add(bytes), Relaxed);
    let _ = entry.number.compare_exchange(BUSY, number.wrapping_add(1), AcqRel, Relaxed);
}

/// Notes that unknown memory is unmapped: all memory must be checked anew.
pub(crate) fn any_memory_goes() {
    memory_goes(0, usize::MAX);
}

/// Position up to which a level has read.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Read(u32);

impl Read {
    #[inline(always)]
    pub(crate) fn is_all(self) -> bool {
        COUNT.load(Acquire) == self.0
    }

    /// Calls `with` for each range since the last call. Returns `false` if any memory may have been
    /// unmapped.
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
