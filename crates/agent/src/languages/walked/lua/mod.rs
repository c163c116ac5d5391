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
use crate::languages::walked::learned::Learned;
use crate::languages::walked::{Described, Dialect, Walk, Walked};
use crate::modules::interpreters::LUA as EXPORTS;

pub(crate) use threads::Slots;

pub(super) static LUA: Dialect = Dialect { number: LANGUAGE_LUA, walk, describe, evaluates, learn, look };

static EVAL: Learned = Learned::new();
/// The number of the layout, plus one; 0: it is LuaJIT's.
static LAYOUT: AtomicUsize = AtomicUsize::new(0);

fn evaluates() -> (usize, usize) {
    EVAL.range()
}

fn learn(natives: &[Frame], runs: usize) {
    EVAL.learn(natives, runs, EXPORTS.new_state.load(Relaxed));
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
    walk.slots.forget_before(EVAL.times());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::languages::walked::tests::describe_anything;

    #[test]
    fn memory_of_any_kind_is_described_or_not_by_each_version() {
        let versions = (0..).take_while(|&number| number == 0 || layout::by_number(number).is_some());
        for number in versions.collect::<Vec<_>>() {
            LAYOUT.store(number, Relaxed);
            describe_anything(&LUA, 2_000);
        }
        LAYOUT.store(0, Relaxed);
    }
}
