//! Asking for a look at what the program has loaded: an allocator in it that nobody reaches through
//! the loader can only be hooked from outside.
//!
//! ```text
//! agent: wanted += 1, waits --> who looks: reads the files' symbols, stops the process where there is something to hook
//! agent: goes on            <-- done = wanted
//! ```
//! Before the program's own code runs, and in the loader whenever it has loaded more, before their
//! code runs. Who does not answer in time is not waited for any longer.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heapr_ring::{forbidden_calls, writer};
use heapr_wire::FLAG_LOOK_INSIDE;

use crate::hooks::inner_functions;
use crate::hooks::kept::{Arguments, Kept, NOTHING, Outcome};
use crate::hooks::{self, Caller, inner_calls};
use crate::modules::link_map;
use crate::state::AGENT;
use crate::x86_64;

/// Longer than a look at a large file takes on a busy machine.
const LIMIT_NS: u64 = 3_000_000_000;

/// How many modules had been loaded when a look was asked for last.
static LOADS: AtomicU64 = AtomicU64::new(0);

/// In place of the loader's `_dl_debug_state`, which it calls before and after a change of its
/// list.
pub(crate) static AFTER_LOAD: Kept = Kept { run: after_load, real: &NOTHING, throwing: &NOTHING, called: 0 };

fn after_load(_kept: &Kept, _words: &Arguments, _caller: Caller) -> Outcome {
    let loads = LOADS.load(Relaxed);
    if loads != 0 && load_count() != loads {
        ask();
    }
    Outcome::Silent
}

fn load_count() -> u64 {
    let mut count = 0;
    link_map::for_each_module(&mut |info| {
        let [loads, _] = info.load_counts;
        count = loads;
        true
    });
    count
}

/// Asks, and waits for the answer.
#[cold]
pub(crate) fn ask() {
    let (Some(pool), Some(slot)) = (AGENT.pool(), AGENT.slot()) else { return };
    if pool.control().flags.load(Relaxed) & FLAG_LOOK_INSIDE == 0 || !forbidden_calls::may_wait() {
        return;
    }
    LOADS.store(load_count(), Relaxed);
    x86_64::choose_vector_saving();
    writer::ask_for_look(pool, slot, LIMIT_NS);
    note_found();
}

/// With allocators inside, each hook looks whether one of them has called it.
#[cold]
pub(crate) fn note_found() {
    if inner_functions::is_any_known() {
        inner_calls::expect_from_anywhere();
        hooks::watch_inner_calls();
    }
}
