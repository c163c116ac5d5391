//! The entry points while a session samples: see [`crate::arch::sampling_entries`].

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use crate::arch::entries::hook_entries;
use crate::arch::sampling_entries::{block_entries, calloc_entry, free_entry, realloc_entry};
use crate::hooks::real::{REAL, RealFunctions};
use crate::hooks::{SLOTS, SlotIndex, sampling};
use crate::state::AGENT;
use crate::state::page_marks::MARKS;

const _: () = assert!(heapr_wire::PAGE_SHIFT == 12, "as the assembly has it, and the injector");

/// Entries of an agent that the loader has loaded: they count calls down.
mod counting {
    use super::*;

    block_entries! { REAL;
        malloc 1 1 offset_of!(RealFunctions, malloc), sampling::malloc;
        memalign 2 2 offset_of!(RealFunctions, memalign), sampling::memalign;
        aligned_alloc 2 2 offset_of!(RealFunctions, aligned_alloc), sampling::aligned_alloc;
        posix_memalign 3 3 offset_of!(RealFunctions, posix_memalign), sampling::posix_memalign;
    }
    calloc_entry! { REAL; offset_of!(RealFunctions, calloc), sampling::calloc }
    realloc_entry! { REAL;
        MARKS, offset_of!(RealFunctions, realloc), sampling::realloc, sampling::realloc_of_candidate
    }
    free_entry! { REAL; MARKS, offset_of!(RealFunctions, free), sampling::free }
}

/// Entries of an injected agent: the injector's code has counted before, or the call is not
/// counted.
mod counted {
    use super::*;

    hook_entries! {
        malloc 1 sampling::malloc;
        memalign 2 sampling::memalign;
        aligned_alloc 2 sampling::aligned_alloc;
        posix_memalign 3 sampling::posix_memalign;
        calloc 2 sampling::calloc;
        realloc 2 sampling::realloc;
        free 1 sampling::free;
    }
}

macro_rules! choose {
    ($kind:ident) => {
        for (index, entry, real) in [
            (SlotIndex::malloc, $kind::malloc as unsafe extern "C" fn(), &REAL.malloc),
            (SlotIndex::memalign, $kind::memalign, &REAL.memalign),
            (SlotIndex::aligned_alloc, $kind::aligned_alloc, &REAL.aligned_alloc),
            (SlotIndex::posix_memalign, $kind::posix_memalign, &REAL.posix_memalign),
            (SlotIndex::calloc, $kind::calloc, &REAL.calloc),
            (SlotIndex::realloc, $kind::realloc, &REAL.realloc),
            (SlotIndex::free, $kind::free, &REAL.free),
        ] {
            // (If the C library lacks a function, its hook stays in place.)
            if real.address() != 0
                && let Some(slot) = SLOTS.get(index as usize)
            {
                slot.store(entry as *mut (), Relaxed);
            }
        }
    };
}

/// Stores the entries in the slots of their functions; all other slots keep their hooks.
#[cold]
pub(crate) fn choose() {
    if AGENT.is_injected.load(Relaxed) == 0 {
        choose!(counting);
    } else {
        choose!(counted);
    }
}
