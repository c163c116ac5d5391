//! Nested calls, which an allocator makes in the middle of another: its calloc that calls malloc,
//! its free that calls free with its own header.
//!
//! ```text
//! program --calloc--> hook --> the library's calloc --malloc--> hook --> the library's malloc
//!                     recorded                                  not recorded
//! ```
//! The program has made one call, and blocks that the library takes for itself are not the
//! program's. A call is nested if it comes from an allocator's code while the thread is in one of
//! that allocator's functions. (Calls of user code from there are recorded as usual: operator new
//! calls the new handler, for example. So are a signal handler's calls.)
//!
//! glibc's functions never make such calls: if all real functions are glibc's, the hooks do not
//! check.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::*};

use crate::arch::entry::Entry;
use crate::hooks;
use crate::hooks::outermost;
use crate::hooks::real::REAL;
use crate::modules::link_map::{self, DlPhdrInfo};
use crate::record::thread::{self, Scope};
use crate::state::AGENT;

/// Largest number of modules that are stored; nested calls within others count twice.
const MODULES_MAX: usize = 16;

/// Start and end of each module with an allocator, and of the C library, which some of them call.
static MODULES: [[AtomicUsize; 2]; MODULES_MAX] = [const { [const { AtomicUsize::new(0) }; 2] }; MODULES_MAX];
static MODULE_COUNT: AtomicU32 = AtomicU32::new(0);

/// Finds the modules of the real functions, and makes the hooks check for nested calls unless all
/// are glibc's.
#[cold]
pub(crate) fn start() {
    let mut is_plain = true;
    link_map::for_each_module(&mut |info| {
        let has_functions = REAL.has_allocator_function_in(info);
        if has_functions {
            let is_glibc = info.dynamic().is_some_and(|dynamic| dynamic.find(b"gnu_get_libc_version") != 0);
            is_plain &= is_glibc;
        }
        if has_functions || info.contains(REAL.munmap.address()) {
            add_allocator(info);
        }
        false
    });
    if !is_plain {
        hooks::watch_inner_calls();
    }
}

/// Stores a module whose calls may be nested ones.
#[cold]
pub(crate) fn add_allocator(info: &DlPhdrInfo) {
    let Some((start, end)) = info.range() else { return };
    if MODULES.iter().any(|module| module.first().is_some_and(|known| known.load(Relaxed) == start)) {
        return;
    }
    let number = MODULE_COUNT.fetch_add(1, Relaxed) as usize;
    if let Some([low, high]) = MODULES.get(number) {
        // Until both words are written the range contains no address.
        high.store(end, Relaxed);
        low.store(start, Release);
    }
}

fn is_of_allocator(pc: usize) -> bool {
    MODULES.iter().any(|[low, high]| {
        let start = low.load(Acquire);
        start != 0 && pc.wrapping_sub(start) < high.load(Relaxed).wrapping_sub(start)
    })
}

/// 1: there are embedded allocators, which lie within user code.
static IS_ANYWHERE: AtomicU32 = AtomicU32::new(0);

/// Start and end of C++'s runtime, if it is a library. Its allocation for an exception outlives the
/// call of the allocator that throws the exception.
static RUNTIME: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

fn is_of_runtime(pc: usize) -> bool {
    let [low, high] = &RUNTIME;
    let start = low.load(Acquire);
    start != 0 && pc.wrapping_sub(start) < high.load(Relaxed).wrapping_sub(start)
}

/// Makes a call from any code count as nested while the thread is in an allocator.
pub(crate) fn expect_from_anywhere() {
    IS_ANYWHERE.store(1, Relaxed);
}

/// Finds C++'s runtime.
#[cold]
pub(crate) fn find_runtime() {
    link_map::for_each_module(&mut |info| {
        let has = |name: &[u8]| info.dynamic().is_some_and(|dynamic| dynamic.find_entry(name).is_some());
        // (A program that contains the runtime may have the allocator beside it.)
        let is_it = info.is_library() && has(b"__cxa_allocate_exception");
        if is_it && let Some((start, end)) = info.range() {
            let [low, high] = &RUNTIME;
            high.store(end, Relaxed);
            low.store(start, Release);
        }
        is_it
    });
}

/// Begins a call of an allocator's function, and returns the value to pass to [`end`]. Returns
/// `None` if the call is nested, and must not be recorded.
#[inline(always)]
pub(crate) fn begin(entry: Entry) -> Option<usize> {
    let mut state = thread::current();
    if state.is_null() {
        // The thread's first call.
        drop(Scope::enter(entry.sp()));
        state = thread::current();
        if state.is_null() {
            return Some(0);
        }
    }
    // SAFETY: this thread's state, which is never unmapped; a signal handler leaves the field as it
    // was.
    let outer_sp = unsafe { &mut (*state).outer_sp };
    let before = *outer_sp;
    if before != 0 && is_inner(before, entry) {
        return None;
    }
    *outer_sp = entry.sp();
    // A call whose frame was left by an exception or longjmp has ended.
    Some(if before > entry.sp() { before } else { 0 })
}

#[cold]
#[inline(never)]
fn is_inner(outer_sp: usize, entry: Entry) -> bool {
    // SAFETY: at entry the stack pointer points to the return address.
    let pc = unsafe { entry.return_avma() };
    // An injector that has installed detours in the functions does not report their modules.
    let may_be =
        || is_of_allocator(pc) || AGENT.is_injected.load(Relaxed) != 0 || IS_ANYWHERE.load(Relaxed) != 0;
    entry.sp() < outer_sp && may_be() && !is_of_runtime(pc) && !outermost::was_left(outer_sp, entry.sp())
}

/// Ends a call that [`begin`] has begun.
#[inline(always)]
pub(crate) fn end(begun: usize) {
    let state = thread::current();
    if !state.is_null() {
        // SAFETY: as in `begin`.
        unsafe { (*state).outer_sp = begun };
    }
}
