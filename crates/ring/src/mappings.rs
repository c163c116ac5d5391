//! A list of the mappings that were made here, so that whoever removes an agent from a process
//! knows what to unmap.

use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Places in the list: what threads have makes up most (a handful of mappings for each thread that
/// was alive at the same time). What finds none stays mapped when the agent is removed. Places that
/// are not used take no memory.
pub const MAPPINGS_MAX: usize = 32_768;

/// (address, bytes) of each mapping; address 0: free.
pub static MAPPINGS: [[AtomicUsize; 2]; MAPPINGS_MAX] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MAPPINGS_MAX];

/// Places that were taken at once so far: those behind are free.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Where a free place is looked for first.
static FIRST_FREE: AtomicUsize = AtomicUsize::new(0);

/// Enters a mapping.
pub(crate) fn note(address: usize, bytes: usize) {
    let first = FIRST_FREE.load(Relaxed).min(MAPPINGS_MAX);
    let places = MAPPINGS.get(first..).unwrap_or_default().iter().chain(&MAPPINGS);
    for (number, [place, place_bytes]) in places.enumerate() {
        if place.load(Relaxed) == 0 && place.compare_exchange(0, address, Relaxed, Relaxed).is_ok() {
            // Release: who reads the list has stopped this thread, or sees a size of 0 and leaves
            // the mapping.
            place_bytes.store(bytes, Release);
            let behind = first.wrapping_add(number) % MAPPINGS_MAX + 1;
            FIRST_FREE.store(behind, Relaxed);
            USED.fetch_max(behind, Relaxed);
            return;
        }
    }
}

/// Takes a mapping off the list.
pub(crate) fn forget(address: usize) {
    let used = MAPPINGS.get(..USED.load(Relaxed)).unwrap_or(&MAPPINGS);
    for (number, [place, place_bytes]) in used.iter().enumerate() {
        if place.load(Relaxed) == address {
            place_bytes.store(0, Relaxed);
            place.store(0, Release);
            FIRST_FREE.fetch_min(number, Relaxed);
            return;
        }
    }
}
