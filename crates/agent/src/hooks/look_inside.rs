//! Requests an inspection of the modules that the program has loaded. An embedded allocator, which
//! no call reaches through the loader, can only be hooked from outside.
//!
//! ```text
//! agent: wanted += 1, waits     --> inspector: reads the files' symbols
//!                                   stops the process to install hooks, if any
//! agent: continues              <-- done = wanted
//! ```
//!
//! An inspection is requested before user code runs, and in the loader whenever it has loaded more
//! modules, before their code runs. If the inspector does not answer in time, the agent does not
//! wait longer.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_ring::{forbidden_calls, sys, writer};
use heapr_wire::{FLAG_LOOK_INSIDE, MARK_EXEC_WANTED, MARK_MEMORY_WANTED};

use crate::arch::wide_registers;
use crate::hooks::all_registers::{Arguments, HookedFunction, NOTHING, Outcome};
use crate::hooks::inner_table;
use crate::hooks::{self, Caller, by_handle, inner_calls};
use crate::modules::{self, link_map};
use crate::process::own_files::{decimal, for_each_line};
use crate::record::thread::Scope;
use crate::record::writing::Records;
use crate::state::AGENT;
use crate::state::own_stack;

/// Largest time in nanoseconds that a process waits for an inspection of its memory; it continues
/// in any case.
const MEMORY_LIMIT_NS: u64 = 500_000_000;

/// Largest time in nanoseconds to wait for an inspection of modules: longer than one takes to begin
/// on a busy machine.
const LIMIT_NS: u64 = 3_000_000_000;

/// Number of modules that had been loaded at the last request; 0: no inspection is to be requested.
static LOADS: AtomicU64 = AtomicU64::new(0);
/// Number of modules that had been unloaded when unloaded ones were last looked for.
static UNLOADS: AtomicU64 = AtomicU64::new(0);

/// Replacement of the loader's `_dl_debug_state`, which it calls before and after a change of its
/// list.
pub(crate) static AFTER_LOAD: HookedFunction = HookedFunction {
    run: after_load,
    real: &NOTHING,
    throwing: &NOTHING,
    called: 0,
    inner: None,
    note_inner: None,
};

fn after_load(_kept: &HookedFunction, _words: &Arguments, caller: Caller) -> Outcome {
    let [loads, unloads] = load_counts();
    // (The loader's lock is held: no module can have been mapped yet where another was.)
    if UNLOADS.swap(unloads, Relaxed) != unloads
        && let Some(mut scope) = Scope::enter(caller.sp())
    {
        modules::forget_unloaded(&mut Records { scope: &mut scope });
    }
    let asked = LOADS.load(Relaxed);
    if loads != asked {
        by_handle::look();
        if asked != 0 {
            ask();
        }
    }
    Outcome::Silent
}

/// Returns the numbers of modules that have been loaded, and unloaded.
fn load_counts() -> [u64; 2] {
    let mut counts = [0; 2];
    link_map::for_each_module(&mut |info| {
        counts = info.load_counts;
        true
    });
    counts
}

/// Requests an inspection of the process's memory, and waits for it: before the process ends, or
/// unmaps a large part of its memory.
#[cold]
pub(crate) fn ask_for_memory() {
    let (Some(pool), Some(slot)) = (AGENT.pool(), AGENT.slot()) else { return };
    if pool.control().flags.load(Relaxed) & FLAG_LOOK_INSIDE != 0 && forbidden_calls::may_wait() {
        // Release: the facts about the process are written.
        slot.exit_marks.fetch_or(MARK_MEMORY_WANTED, Release);
        own_stack::leave(|| writer::ask_for_look(pool, slot, MEMORY_LIMIT_NS, false));
    }
}

/// Requests that the exec that this thread is about to call is held from outside, because the
/// program cannot find the session by itself. Returns `false` if it is not held.
#[cold]
pub(crate) fn ask_to_hold_exec(program: &[u8]) -> bool {
    // A child that has not allocated is not registered yet. (If it cannot see its pid namespace, it
    // cannot be distinguished from others with the same number.)
    if AGENT.slot().is_none() && writer::process_namespace() != 0 {
        AGENT.process();
    }
    let (Some(pool), Some(slot)) = (AGENT.pool(), AGENT.slot()) else { return false };
    if pool.control().flags.load(Relaxed) & FLAG_LOOK_INSIDE == 0 || !forbidden_calls::may_wait() {
        return false;
    }
    slot.exec_pid.store(sys::process_id(), Relaxed);
    slot.exec_tid.store(sys::thread_id(), Relaxed);
    slot.exec_held.store(0, Relaxed);
    writer::store_untraced_name(slot, program);
    // Release: the three are written.
    slot.exit_marks.fetch_or(MARK_EXEC_WANTED, Release);
    own_stack::leave(|| writer::ask_for_look(pool, slot, LIMIT_NS, true));
    slot.exec_held.load(Acquire) != 0
}

/// Least number of bytes, unmapped at once, for which an inspection is considered.
const UNMAPPED_BYTES: usize = 256 << 10;
/// Least number of own pages with which a process is inspected.
const LOOKED_AT_PAGES: u64 = 1 << 10;

/// Number of own pages at the last inspection that [`before_unmapping`] has requested.
static LOOKED_PAGES: AtomicU64 = AtomicU64::new(0);

/// True if an inspection may be useful before so many bytes are unmapped.
pub(crate) fn is_large(bytes: usize) -> bool {
    bytes >= UNMAPPED_BYTES && AGENT.is_active()
}

/// Requests an inspection before the program unmaps memory, if its own memory has grown by a
/// quarter since the last one.
#[cold]
pub(crate) fn before_unmapping() {
    let mut own_pages = 0;
    for_each_line(b"/proc/self/statm\0", &mut |line| {
        // Total pages, resident pages, pages of files and shared memory.
        let mut numbers = line.split(|&byte| byte == b' ').map(decimal);
        if let (Some(_), Some(resident), Some(shared)) = (numbers.next(), numbers.next(), numbers.next()) {
            own_pages = resident.saturating_sub(shared);
        }
    });
    let looked = LOOKED_PAGES.load(Relaxed);
    if own_pages >= LOOKED_AT_PAGES && own_pages > looked.saturating_add(looked / 4) {
        LOOKED_PAGES.store(own_pages, Relaxed);
        ask_for_memory();
    }
}

/// Makes every later load request an inspection. For an injected agent. (The present number of
/// loads cannot be read while the program's threads are stopped.)
pub(crate) fn expect_loads() {
    LOADS.store(u64::MAX, Relaxed);
}

/// Requests an inspection of the modules, and waits for it.
#[cold]
pub(crate) fn ask() {
    let (Some(pool), Some(slot)) = (AGENT.pool(), AGENT.slot()) else { return };
    if pool.control().flags.load(Relaxed) & FLAG_LOOK_INSIDE == 0 || !forbidden_calls::may_wait() {
        return;
    }
    let [loads, _] = load_counts();
    LOADS.store(loads, Relaxed);
    wide_registers::begin_keeping();
    own_stack::leave(|| writer::ask_for_look(pool, slot, LIMIT_NS, true));
    if inner_table::is_any_known() {
        inner_calls::find_runtime();
    }
    note_found();
}

/// Makes each hook check whether an embedded allocator has called it, if there are any.
#[cold]
pub(crate) fn note_found() {
    if inner_table::is_any_known() {
        inner_calls::expect_from_anywhere();
        hooks::watch_calls_from_inside();
    }
}
