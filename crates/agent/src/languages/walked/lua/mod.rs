//! Lua, of its authors and LuaJIT: the calls of the threads that run on the native stack.
//!
//! ```text
//! native stack     [malloc's caller] … [evaluate] … [protected call] … [evaluate] … [main]
//! names on it           thread 2                     ^ thread 2's      thread 1     ^ thread 1's
//! ```
//! Nothing of a process says which of its threads runs. But each function of Lua has the thread at
//! hand, so that the stack names it, and each thread that runs points to the protected call on the
//! native stack that runs it: the innermost of these is the running one, the next has resumed it.

mod interpreter;
mod layout;
mod lines;
mod luajit;
mod text;
mod threads;

use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_wire::LANGUAGE_LUA;

use crate::frames::frame::Frame;
use crate::languages::readable::Readable;
use crate::languages::unknown;
use crate::languages::walked::{Described, Dialect, Walk, Walked};
use crate::modules;
use crate::modules::interpreters::LUA as EXPORTS;
use crate::modules::memory_map::{Access, Place, place_of};

pub(crate) use threads::Slots;

pub(super) static LUA: Dialect = Dialect { number: LANGUAGE_LUA, walk, describe, evaluates, learn, look };

/// The evaluating function, once a stack has shown it.
static EVAL: AtomicUsize = AtomicUsize::new(0);
static EVAL_END: AtomicUsize = AtomicUsize::new(0);
/// The number of the layout, plus one; 0: it is LuaJIT's.
static LAYOUT: AtomicUsize = AtomicUsize::new(0);

fn evaluates() -> (usize, usize) {
    (EVAL.load(Relaxed), EVAL_END.load(Relaxed))
}

/// How often it was found: what was kept before says nothing then.
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// No module says where the evaluating function is. It is the largest of those on the stack that
/// are the interpreter's, as it has a part for each instruction there is, and is called once for
/// each run of frames.
fn learn(natives: &[Frame], runs: usize) {
    let calls_in = |(low, high): (usize, usize)| {
        natives.iter().filter(|frame| frame.pc > low && frame.pc <= high).count()
    };
    if calls_in(evaluates()) != 0 {
        return;
    }
    let Place::Mapped { low, high } = place_of(EXPORTS.new_state.load(Relaxed), Access::Read) else { return };
    let functions = natives.iter().filter_map(|frame| {
        let call = frame.pc.wrapping_sub(1);
        if !(low..high).contains(&call) {
            return None;
        }
        modules::unwind_tables(call)?.function(call)
    });
    let of_all_runs = functions.filter(|&function| calls_in(function) == runs);
    if let Some((low, high)) = of_all_runs.max_by_key(|(low, high)| high.wrapping_sub(*low)) {
        EVAL.store(low, Relaxed);
        EVAL_END.store(high, Relaxed);
        FOUND.fetch_add(1, Relaxed);
    }
}

fn look() -> bool {
    if EXPORTS.new_state.load(Acquire) == 0 || EXPORTS.is_seen.swap(1, Relaxed) != 0 {
        return false;
    }
    if EXPORTS.is_luajit.load(Relaxed) != 0 {
        LAYOUT.store(0, Relaxed);
        return true;
    }
    let release = layout::release(EXPORTS.ident.load(Relaxed), EXPORTS.ident_bytes.load(Relaxed));
    let number = release.and_then(layout::number_of);
    if number.is_none() {
        unknown::note(LANGUAGE_LUA, release.map_or(0, |[major, minor, _]| major << 8 | minor));
    }
    LAYOUT.store(number.map_or(0, |number| number.wrapping_add(1)), Relaxed);
    number.is_some()
}

fn walk(walk: &mut Walk<'_>, out: &mut dyn FnMut(Walked) -> bool) {
    let layout = layout::by_number(LAYOUT.load(Relaxed));
    let shape = layout.map_or(&luajit::THREAD, |layout| &layout.thread);
    walk.slots.forget_before(FOUND.load(Relaxed));
    let threads = threads::running(walk, shape);
    let mut is_innermost = true;
    for &thread in threads.iter() {
        let goes_on = match layout {
            Some(layout) => interpreter::walk(walk, layout, (thread, is_innermost), out),
            None => luajit::walk(walk.readable, thread, out),
        };
        is_innermost = false;
        if goes_on != Some(true) {
            return;
        }
    }
}

fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
    match layout::by_number(LAYOUT.load(Relaxed)) {
        Some(layout) => interpreter::describe(readable, layout, walked, out),
        None => luajit::describe(readable, walked, out),
    }
}
