//! The entry points while a session samples: see [`crate::x86_64::sampling_entries`].

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use crate::hooks::real::{REAL, RealFunctions};
use crate::hooks::{SLOTS, SlotIndex, sampling};
use crate::record::countdown::Countdown;
use crate::record::thread::ThreadState;
use crate::state::AGENT;
use crate::state::page_marks::MARKS;
use crate::x86_64::sampling_entries::{block_entries, calloc_entry, free_entry, realloc_entry};

/// Where a thread's state has the countdown of an injected agent.
const COUNTDOWN: usize = offset_of!(ThreadState, countdown) + offset_of!(Countdown, left_bytes);

const _: () = assert!(heapr_wire::PAGE_SHIFT == 12, "as the assembly has it");

macro_rules! entries {
    ($kind:ident) => {
        mod $kind {
            use super::*;

            block_entries! { $kind REAL, COUNTDOWN;
                malloc 1 "rdi" offset_of!(RealFunctions, malloc), sampling::malloc;
                memalign 2 "rsi" offset_of!(RealFunctions, memalign), sampling::memalign;
                aligned_alloc 2 "rsi" offset_of!(RealFunctions, aligned_alloc), sampling::aligned_alloc;
                posix_memalign 3 "rdx" offset_of!(RealFunctions, posix_memalign), sampling::posix_memalign;
            }
            calloc_entry! { $kind REAL, COUNTDOWN; offset_of!(RealFunctions, calloc), sampling::calloc }
            realloc_entry! { $kind REAL, COUNTDOWN;
                MARKS, offset_of!(RealFunctions, realloc), sampling::realloc, sampling::realloc_of_candidate
            }
            free_entry! { REAL; MARKS, offset_of!(RealFunctions, free), sampling::free }

            /// Puts them into their slots.
            pub(super) fn choose() {
                for (index, entry, real) in [
                    (SlotIndex::malloc, malloc as unsafe extern "C" fn(), &REAL.malloc),
                    (SlotIndex::memalign, memalign, &REAL.memalign),
                    (SlotIndex::aligned_alloc, aligned_alloc, &REAL.aligned_alloc),
                    (SlotIndex::posix_memalign, posix_memalign, &REAL.posix_memalign),
                    (SlotIndex::calloc, calloc, &REAL.calloc),
                    (SlotIndex::realloc, realloc, &REAL.realloc),
                    (SlotIndex::free, free, &REAL.free),
                ] {
                    // (A function that the C library lacks has its hook in its place.)
                    if real.address() != 0
                        && let Some(slot) = SLOTS.get(index as usize)
                    {
                        slot.store(entry as *mut (), Relaxed);
                    }
                }
            }
        }
    };
}

entries! { loaded }
entries! { injected }

/// Puts them into the slots of the functions that they are for; all others keep their hooks.
#[cold]
pub(crate) fn choose() {
    if AGENT.is_injected.load(Relaxed) == 0 {
        loaded::choose();
    } else {
        injected::choose();
    }
}
