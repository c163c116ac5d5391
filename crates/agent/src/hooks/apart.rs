//! Libraries that are loaded apart: with `RTLD_DEEPBIND`, or in a namespace of their own
//! (`dlmopen`). Their calls are bound to the C library itself (in a namespace: to another copy of
//! it), past the agent.
//!
//! The loader finds that function in the library's table of symbols. So the table is changed,
//! before such a library is bound:
//!
//! ```text
//! library --malloc--> loader --looks up--> table of the C library: malloc = trampoline --> hook --> the C library's malloc
//! ```
//! `RTLD_DEEPBIND` itself stays, for what else the library has of its own.
//!
//! A namespace's C library is there once the loader has mapped all libraries, and is needed when it
//! binds the first. Between the two it calls `calloc` for each library's versions, which is hooked:
//! see [`calloc_while_loading`]. (The lists of namespaces are glibc 2.35's.)

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use crate::hooks::by_handle;
use crate::hooks::real::{DLMOPEN, DLOPEN, REAL};
use crate::hooks::{self, SLOTS, SlotIndex};
use crate::modules::link_map;
use crate::state::AGENT;
use crate::x86_64::entries::{calloc_watcher, loader_entries};
use crate::x86_64::thread_pointer;

/// Threads that can be loading libraries apart at once; of more, some are seen late.
const LOADING_MAX: usize = 8;
/// Thread pointer, and the stack pointer with which it has called the loader.
static LOADING: [[AtomicUsize; 2]; LOADING_MAX] = [const { [const { AtomicUsize::new(0) }; 2] }; LOADING_MAX];
/// Where the loader's own code lies.
static LOADER: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// The hook of calloc, while [`calloc_while_loading`] stands in its slot.
static CALLOC: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// The mode of dlopen that has a library's calls bound past the agent.
const RTLD_DEEPBIND: u32 = 8;

loader_entries! { DLOPEN, RTLD_DEEPBIND, before_dlopen, first_dlopen; before_dlmopen }

/// Before dlopen with `RTLD_DEEPBIND`; gives the real one, 0 if there is none.
pub(crate) unsafe extern "C" fn before_dlopen(entry_sp: *const usize) -> usize {
    before_load(entry_sp);
    DLOPEN.found_late()
}

/// Before dlmopen.
pub(crate) unsafe extern "C" fn before_dlmopen(entry_sp: *const usize) -> usize {
    before_load(entry_sp);
    DLMOPEN.found_late()
}

/// Before a dlopen whose real function is not known yet.
pub(crate) unsafe extern "C" fn first_dlopen(mode: u32, entry_sp: *const usize) -> usize {
    hooks::start_agent();
    if mode & RTLD_DEEPBIND != 0 {
        before_load(entry_sp);
    }
    DLOPEN.found_late()
}

#[cold]
fn before_load(entry_sp: *const usize) {
    hooks::start_agent();
    if !AGENT.is_active() {
        return;
    }
    link_map::for_each_module(&mut |info| {
        if info.dynamic().is_some_and(|dynamic| dynamic.find_entry(b"_rtld_global").is_some())
            && let Some((low, high)) = info.range()
        {
            let [start, end] = &LOADER;
            end.store(high, Relaxed);
            start.store(low, Release);
        }
        false
    });
    by_handle::look();
    let this = thread_pointer::thread_pointer();
    let is_free = |[thread, _]: &&[AtomicUsize; 2]| [0, this].contains(&thread.load(Relaxed));
    if let Some([thread, sp]) = LOADING.iter().find(is_free).or(LOADING.first()) {
        sp.store(entry_sp as usize, Relaxed);
        thread.store(this, Release);
    }
    let Some(slot) = SLOTS.get(SlotIndex::calloc as usize) else { return };
    let hook = slot.load(Relaxed);
    let watching = calloc_while_loading as *mut ();
    if hook != watching && AGENT.is_active() {
        CALLOC.store(hook, Release);
        // An agent that has ended meanwhile stays so.
        let _ = slot.compare_exchange(hook, watching, AcqRel, Relaxed);
    }
}

calloc_watcher! { calloc_while_loading, before_calloc }

/// Before calloc once a library has been loaded apart; gives the hook that stood in its slot
/// before, or the real function.
unsafe extern "C" fn before_calloc(entry_sp: *const usize) -> usize {
    // SAFETY: at entry the stack pointer points to the return address.
    let pc = unsafe { *entry_sp };
    let [start, end] = &LOADER;
    let low = start.load(Acquire);
    if pc.wrapping_sub(low) < end.load(Relaxed).wrapping_sub(low) {
        look_at_loading(entry_sp as usize);
    }
    let hook = CALLOC.load(Acquire);
    if hook.is_null() { REAL.calloc.address() } else { hook as usize }
}

/// While this thread loads a library apart (and so holds the loader's lock), all namespaces are
/// looked through.
#[cold]
fn look_at_loading(sp: usize) {
    let this = thread_pointer::thread_pointer();
    let Some([thread, outer_sp]) = LOADING.iter().find(|[thread, _]| thread.load(Relaxed) == this) else {
        return;
    };
    if sp > outer_sp.load(Relaxed) {
        thread.store(0, Release);
        return;
    }
    by_handle::look();
    link_map::for_each_in_namespaces(&mut |info| by_handle::look_at(info));
}
