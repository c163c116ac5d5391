//! The hooks: the agent's code for each entry point of the allocator, which also calls the real
//! function.
//!
//! Order: a free is recorded before the real free, an allocation after the real allocation, a
//! realloc as prepare and commit. So sorting by time gives the order in which any address changed
//! hands. The real functions are called outside of the agent's own scope: functions that they call
//! in turn are hooked as usual.
//!
//! errno is left as the real function left it: nothing here calls the C library.

#[macro_use]
pub(crate) mod real;

pub(crate) mod all_registers;
pub(crate) mod arenas;
mod around;
pub(crate) mod by_handle;
mod c_functions;
pub(crate) mod call_by_number;
mod caller;
pub(crate) mod entries;
pub(crate) mod exec;
pub(crate) mod exec_lists;
pub(crate) mod foreign;
pub(crate) mod forwarded;
pub(crate) mod heaps;
pub(crate) mod hooked_function;
pub(crate) mod injected;
pub(crate) mod inner_calls;
pub(crate) mod inner_functions;
pub(crate) mod inner_table;
pub(crate) mod inside;
pub(crate) mod last_facts;
pub(crate) mod locking;
pub(crate) mod look_inside;
pub(crate) mod mapping_hooks;
pub(crate) mod other_allocators;
pub(crate) mod other_namespaces;
pub(crate) mod outermost;
pub(crate) mod plain_calls;
mod recording;
pub(crate) mod registered_code;
pub(crate) mod sampling;
pub(crate) mod sampling_entries;
pub(crate) mod sandbox;
pub(crate) mod sanitizers;
pub(crate) mod shared;
pub(crate) mod start;
pub(crate) mod step_aside;
pub(crate) mod symbol_tables;
pub(crate) mod thread_keys;
pub(crate) mod tree_calls;

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

use c_functions::{
    __libc_calloc, __libc_free, __libc_malloc, __libc_memalign, __libc_pvalloc, __libc_realloc,
    __libc_valloc, aligned_alloc, calloc, cfree, dlclose, free, free_aligned_sized, free_sized, malloc,
    memalign, munmap, posix_memalign, pvalloc, realloc, reallocarray, valloc,
};
use mapping_hooks::{brk, mprotect, sbrk};
use real::{MMAP, MREMAP, REAL};

pub(crate) use caller::{Caller, NO_STACK, stack_for};
pub(crate) use recording::{aligned_block, allocated, freed, new_block, note_free, reallocated};

use crate::languages;
use crate::state::{AGENT, DISABLED, STARTING};

type Pointer = *mut c_void;

/// Starts the agent, unless it is started: the first hook that is called does so.
#[cold]
pub(crate) fn start_agent() {
    start::start();
}

/// Starts the agent for the trampolines of mmap and mremap, whose slots lead here until their hooks
/// are chosen.
pub(crate) unsafe extern "C" fn start_for_mapping() {
    start_agent();
    if AGENT.state.load(Relaxed) == STARTING {
        // Called from within the start itself.
        mapping_hooks::disarm();
    }
}

/// Starts the agent, for a trampoline.
pub(crate) unsafe extern "C" fn start_for_call() {
    start_agent();
}

/// Inspects a new module, which may be an allocator, or an interpreter.
pub(crate) fn look_at_new_modules() {
    languages::look();
    foreign::start();
}

/// Reason why the hooks check for nested calls.
static WATCHES: AtomicU32 = AtomicU32::new(WATCHES_NONE);
const WATCHES_NONE: u32 = 0;
/// [`WATCHES`]: there are embedded allocators; a sample is checked when it is drawn ([`inside`]).
const WATCHES_INSIDE: u32 = 1;
/// [`WATCHES`]: the allocator itself calls its own functions, or those of others.
const WATCHES_ALWAYS: u32 = 2;

/// Makes the hooks check for calls of the allocator itself.
#[cold]
pub(crate) fn watch_inner_calls() {
    WATCHES.store(WATCHES_ALWAYS, Relaxed);
    choose_watching();
}

/// Makes the hooks check for calls of embedded allocators.
#[cold]
pub(crate) fn watch_calls_from_inside() {
    if WATCHES.load(Relaxed) == WATCHES_NONE {
        WATCHES.store(WATCHES_INSIDE, Relaxed);
        choose_entries(sampling::takes_some());
    }
}

/// Chooses the entry points of a session that samples, or of one that records all.
#[cold]
pub(crate) fn choose_entries(is_sampling: bool) {
    match WATCHES.load(Relaxed) {
        WATCHES_NONE => choose_hooks(),
        WATCHES_INSIDE => choose_watching(),
        _ => return,
    }
    if is_sampling {
        sampling_entries::choose();
    }
    if AGENT.state.load(Relaxed) == DISABLED {
        bypass();
    }
}

macro_rules! slots {
    ($($nests:ident $words:tt $kind:ident |$a:pat_param, $b:pat_param, $c:pat_param| $what:expr;)*) => {
        /// The hooks of the allocator's functions.
        mod plain {
            crate::arch::entries::hook_entries! { $($nests $words super::$nests::<false>;)* }
        }

        /// Hooks that check whether the allocator itself has called them.
        mod watching {
            crate::arch::entries::hook_entries! { $($nests $words super::$nests::<true>;)* }
        }

        slots! { @all $(plain::$nests, $nests;)* dlclose, dlclose; munmap, munmap; mprotect, mprotect;
            sbrk, sbrk; brk, brk; }

        /// Makes every hook of an allocator's function check whether the allocator itself has
        /// called it.
        fn choose_watching() {
            $(
                if let Some(slot) = SLOTS.get(SlotIndex::$nests as usize) {
                    slot.store(watching::$nests as *mut (), Relaxed);
                }
            )*
        }

        /// Restores the hooks that record all calls.
        fn choose_hooks() {
            $(
                if let Some(slot) = SLOTS.get(SlotIndex::$nests as usize) {
                    slot.store(plain::$nests as *mut (), Relaxed);
                }
            )*
        }
    };
    (@all $($hook:expr, $name:ident;)*) => {
        /// Index of each trampoline's slot.
        #[allow(non_camel_case_types, reason = "named as the C functions")]
        #[repr(usize)]
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum SlotIndex { $($name,)* }

        /// Target of each exported trampoline: the hook, or the real function once recording has
        /// ended.
        pub(crate) static SLOTS: [AtomicPtr<()>; [$(SlotIndex::$name),*].len()] =
            [$(AtomicPtr::new($hook as *mut ())),*];

        /// Points every trampoline at the real function.
        pub(crate) fn bypass() {
            $(
                let address = REAL.$name.address();
                // If the program's C library lacks a function, the hook stays in its place.
                if address != 0 && let Some(slot) = SLOTS.get(SlotIndex::$name as usize) {
                    slot.store(address as *mut (), Relaxed);
                }
            )*
            mapping_hooks::bypass();
        }

        /// Calls `visit` with the name of every trampoline that [`bypass`] has pointed at the real
        /// function.
        pub(crate) fn for_each_bypassed(visit: &mut dyn FnMut(&[u8])) {
            $(
                if REAL.$name.address() != 0 {
                    visit(REAL.$name.name);
                }
            )*
            for (real, names) in [(&MMAP, &[&b"mmap"[..], b"mmap64"][..]), (&MREMAP, &[b"mremap"])] {
                if real.address() != 0 {
                    names.iter().for_each(|name| visit(name));
                }
            }
        }
    };
}

for_all_allocator_functions! { slots }
