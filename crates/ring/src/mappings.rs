//! List of the mappings that this crate made in the process, for the removal of an agent, which
//! must unmap them.

use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Capacity of an agent's list. Threads need most of it: a handful of mappings for each thread
/// alive at one time. A mapping that finds no entry stays mapped when the agent is removed. Unused
/// entries take no memory.
pub const MAPPINGS_MAX: usize = 32_768;

/// Capacity of this process's list. Only an agent is ever removed; elsewhere the list is short, as
/// half a megabyte of variables may be more than `ulimit -d` leaves.
const PLACES: usize = if cfg!(feature = "agent") { MAPPINGS_MAX } else { 64 };

/// (address, bytes) of each mapping; address 0: free.
pub static MAPPINGS: [[AtomicUsize; 2]; PLACES] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; PLACES];

/// Number of entries up to the last one ever used; all further ones are free.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Index at which the search for a free entry begins.
static FIRST_FREE: AtomicUsize = AtomicUsize::new(0);

/// Adds a mapping.
pub(crate) fn note(address: usize, bytes: usize) {
    let first = FIRST_FREE.load(Relaxed).min(PLACES);
    let places = MAPPINGS.get(first..).unwrap_or_default().iter().chain(&MAPPINGS);
    for (number, [place, place_bytes]) in places.enumerate() {
        if place.load(Relaxed) == 0 && place.compare_exchange(0, address, Relaxed, Relaxed).is_ok() {
            // Release: a reader of the list has stopped this thread, or sees a size of 0 and leaves
            // the mapping.
            place_bytes.store(bytes, Release);
            let behind = first.wrapping_add(number) % PLACES + 1;
            FIRST_FREE.store(behind, Relaxed);
            USED.fetch_max(behind, Relaxed);
            return;
        }
    }
}

/// Removes a mapping.
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
