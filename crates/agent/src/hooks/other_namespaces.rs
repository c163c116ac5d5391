//! Libraries whose calls are bound past the agent: those loaded with `RTLD_DEEPBIND`, or into
//! another linker namespace (`dlmopen`). Their calls are bound to the C library itself (in another
//! namespace: to another copy of it).
//!
//! The loader finds the C library's function in that library's symbol table. So the table is
//! changed before such a library is bound:
//!
//! ```text
//! library --malloc--> loader --looks up--> table of the C library: malloc = trampoline
//! trampoline --> hook --> the C library's malloc
//! ```
//! `RTLD_DEEPBIND` itself stays in effect for the library's other symbols.
//!
//! A namespace's C library is mapped once the loader has mapped all libraries, and is needed when
//! the loader binds the first one. Between the two the loader calls `calloc`, which is hooked, for
//! each library's versions: see [`calloc_while_loading`]. (The lists of namespaces are glibc
//! 2.35's.)

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use crate::arch::entry::Entry;
use crate::arch::loader_entries::{calloc_watcher, loader_entries};
use crate::arch::thread_pointer;
use crate::hooks::by_handle;
use crate::hooks::real::{DLMOPEN, DLOPEN, REAL};
use crate::hooks::{self, SLOTS, SlotIndex};
use crate::modules::link_map;
use crate::state::AGENT;

/// Number of threads that can load such libraries at once; libraries of further threads may be seen
/// late.
const LOADING_MAX: usize = 8;
/// Thread pointer of each such thread, and the stack pointer with which it has called the loader.
static LOADING: [[AtomicUsize; 2]; LOADING_MAX] = [const { [const { AtomicUsize::new(0) }; 2] }; LOADING_MAX];
/// Address range of the loader's own code.
static LOADER: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// The hook of calloc, while [`calloc_while_loading`] is in its slot.
static CALLOC: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Mode flag of dlopen that binds a library's calls past the agent.
const RTLD_DEEPBIND: u32 = 8;

loader_entries! { DLOPEN, RTLD_DEEPBIND, before_dlopen, first_dlopen; before_dlmopen }

/// Prepares a dlopen with `RTLD_DEEPBIND`, and returns the real function's address; 0 if it is not
/// found.
pub(crate) unsafe extern "C" fn before_dlopen(entry: Entry) -> usize {
    before_load(entry);
    DLOPEN.found_late()
}

/// Prepares a dlmopen, and returns the real function's address.
pub(crate) unsafe extern "C" fn before_dlmopen(entry: Entry) -> usize {
    before_load(entry);
    DLMOPEN.found_late()
}

/// Prepares a dlopen whose real function is not known yet, and returns its address.
pub(crate) unsafe extern "C" fn first_dlopen(mode: u32, entry: Entry) -> usize {
    hooks::start_agent();
    if mode & RTLD_DEEPBIND != 0 {
        before_load(entry);
    }
    DLOPEN.found_late()
}

#[cold]
fn before_load(entry: Entry) {
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
        sp.store(entry.sp(), Relaxed);
        thread.store(this, Release);
    }
    let Some(slot) = SLOTS.get(SlotIndex::calloc as usize) else { return };
    let hook = slot.load(Relaxed);
    let watching = calloc_while_loading as *mut ();
    if hook != watching && AGENT.is_active() {
        CALLOC.store(hook, Release);
        // An agent that has ended in the meantime stays ended.
        let _ = slot.compare_exchange(hook, watching, AcqRel, Relaxed);
    }
}

calloc_watcher! { calloc_while_loading, before_calloc }

/// Runs before each calloc once such a library has been loaded; returns the hook that was in the
/// slot before, or the real function.
unsafe extern "C" fn before_calloc(entry: Entry) -> usize {
    // SAFETY: at entry the stack pointer points to the return address.
    let pc = unsafe { entry.return_avma() };
    let [start, end] = &LOADER;
    let low = start.load(Acquire);
    if pc.wrapping_sub(low) < end.load(Relaxed).wrapping_sub(low) {
        look_at_loading(entry.sp());
    }
    let hook = CALLOC.load(Acquire);
    if hook.is_null() { REAL.calloc.address() } else { hook as usize }
}

/// Inspects the modules of all namespaces, while this thread loads such a library (and so holds the
/// loader's lock).
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
