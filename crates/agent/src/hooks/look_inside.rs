//! Asking for a look at what the program has loaded: an allocator in it that nobody reaches through
//! the loader can only be hooked from outside.
//!
//! ```text
//! agent: wanted += 1, waits --> who looks: reads the files' symbols, stops the process where there is something to hook
//! agent: goes on            <-- done = wanted
//! ```
//! Before the program's own code runs, and in the loader whenever it has loaded more, before their
//! code runs. Who does not answer in time is not waited for any longer.

use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_ring::{forbidden_calls, sys, writer};
use heapr_wire::{FLAG_LOOK_INSIDE, MARK_EXEC_WANTED, MARK_MEMORY_WANTED};

use crate::hooks::inner_table;
use crate::hooks::kept::{Arguments, Kept, NOTHING, Outcome};
use crate::hooks::{self, Caller, by_handle, inner_calls};
use crate::modules::{self, link_map};
use crate::process::own_files::{decimal, for_each_line};
use crate::record::events;
use crate::record::thread::Scope;
use crate::state::AGENT;
use crate::state::own_stack;
use crate::x86_64::wide_registers;

/// What a process waits at most until its memory was looked at: it goes on also if nobody has.
const MEMORY_LIMIT_NS: u64 = 500_000_000;

/// Longer than it takes until somebody is at it, on a busy machine.
const LIMIT_NS: u64 = 3_000_000_000;

/// How many modules had been loaded when a look was asked for last; 0: nobody is to be asked.
static LOADS: AtomicU64 = AtomicU64::new(0);
/// How many had been unloaded when it was looked last which.
static UNLOADS: AtomicU64 = AtomicU64::new(0);

/// In place of the loader's `_dl_debug_state`, which it calls before and after a change of its
/// list.
pub(crate) static AFTER_LOAD: Kept =
    Kept { run: after_load, real: &NOTHING, throwing: &NOTHING, called: 0, inner: None, note_inner: None };

fn after_load(_kept: &Kept, _words: &Arguments, caller: Caller) -> Outcome {
    let [loads, unloads] = load_counts();
    // (The loader's lock is held: nothing can be where something has been yet.)
    if UNLOADS.swap(unloads, Relaxed) != unloads
        && let Some(mut scope) = Scope::enter(caller.sp())
    {
        modules::forget_unloaded(&mut events::Records { scope: &mut scope });
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

/// How many modules have been loaded, and unloaded.
fn load_counts() -> [u64; 2] {
    let mut counts = [0; 2];
    link_map::for_each_module(&mut |info| {
        counts = info.load_counts;
        true
    });
    counts
}

/// Has its memory looked at, and waits for that: before it ends, or gives a large part of it back.
#[cold]
pub(crate) fn ask_for_memory() {
    let (Some(pool), Some(slot)) = (AGENT.pool(), AGENT.slot()) else { return };
    if pool.control().flags.load(Relaxed) & FLAG_LOOK_INSIDE != 0 && forbidden_calls::may_wait() {
        // Release: what is to be known of it is written.
        slot.exit_marks.fetch_or(MARK_MEMORY_WANTED, Release);
        own_stack::leave(|| writer::ask_for_look(pool, slot, MEMORY_LIMIT_NS, false));
    }
}

/// Has the exec that this thread is about to call held from outside: the program cannot find the
/// session by itself. `false`: nobody does.
#[cold]
pub(crate) fn ask_to_hold_exec(program: &[u8]) -> bool {
    // A child that has not allocated is not registered yet. (It can only be told from others that
    // see themselves under the same number where it sees which numbers they are.)
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
    // Release: the three are there.
    slot.exit_marks.fetch_or(MARK_EXEC_WANTED, Release);
    own_stack::leave(|| writer::ask_for_look(pool, slot, LIMIT_NS, true));
    slot.exec_held.load(Acquire) != 0
}

/// What is unmapped at once before anybody need look.
const UNMAPPED_BYTES: usize = 256 << 10;
/// With less of its own a process is not looked at: as many pages.
const LOOKED_AT_PAGES: u64 = 1 << 10;

/// Own pages at the last look that [`before_unmapping`] has asked for.
static LOOKED_PAGES: AtomicU64 = AtomicU64::new(0);

/// Whether something that is unmapped may be what a look is for.
pub(crate) fn is_large(bytes: usize) -> bool {
    bytes >= UNMAPPED_BYTES && AGENT.is_active()
}

/// Before the program gives back what it has mapped: what it held is seen once more if it has grown
/// by a quarter.
#[cold]
pub(crate) fn before_unmapping() {
    let mut own_pages = 0;
    for_each_line(b"/proc/self/statm\0", &mut |line| {
        // All, resident, of files and shared memory.
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

/// In a program that was attached to: whatever it loads from now on is looked at. (How much that
/// is by now cannot be asked while its threads stand still.)
pub(crate) fn expect_loads() {
    LOADS.store(u64::MAX, Relaxed);
}

/// Asks, and waits for the answer.
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

/// With allocators inside, each hook looks whether one of them has called it.
#[cold]
pub(crate) fn note_found() {
    if inner_table::is_any_known() {
        inner_calls::expect_from_anywhere();
        hooks::watch_calls_from_inside();
    }
}
