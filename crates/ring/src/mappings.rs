//! A list of the mappings that were made here, so that whoever removes an agent from a process
//! knows what to unmap.

use core::sync::atomic::{AtomicUsize, Ordering::*};

/// Places in the list: thread states make up most (two mappings for each thread that was alive at
/// the same time). What finds none stays mapped when the agent is removed.
pub const MAPPINGS_MAX: usize = 16_384;

/// (address, bytes) of each mapping; address 0: free.
pub static MAPPINGS: [[AtomicUsize; 2]; MAPPINGS_MAX] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; MAPPINGS_MAX];

/// Enters a mapping.
pub(crate) fn note(address: usize, bytes: usize) {
    for [place, place_bytes] in &MAPPINGS {
        if place.load(Relaxed) == 0 && place.compare_exchange(0, address, Relaxed, Relaxed).is_ok() {
            // Release: who reads the list has stopped this thread, or sees a size of 0 and leaves
            // the mapping.
            place_bytes.store(bytes, Release);
            return;
        }
    }
}

/// Takes a mapping off the list.
pub(crate) fn forget(address: usize) {
    for [place, place_bytes] in &MAPPINGS {
        if place.load(Relaxed) == address {
            place_bytes.store(0, Relaxed);
            place.store(0, Release);
            return;
        }
    }
}
