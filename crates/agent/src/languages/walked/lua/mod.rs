//! Lua, the original and LuaJIT: the calls of the threads that run on the native stack.
//!
//! ```text
//! native stack     [malloc's caller] … [evaluate] … [protected call] … [evaluate] … [main]
//! names on it           thread 2                     ^ thread 2's      thread 1     ^ thread 1's
//! ```
//! No variable of a process says which of its threads runs. But each function of Lua uses the
//! thread, so the native stack contains its address. Each running thread points to the protected
//! call on the native stack that runs it. The innermost of these threads is the running one; the
//! next has resumed it.

mod interpreter;
pub(crate) mod layout;
mod lines;
mod luajit;
mod names;
mod text;
mod threads;

use core::sync::atomic::{AtomicUsize, Ordering::*};

use heapr_wire::LANGUAGE_LUA;

use crate::frames::frame::Frame;
use crate::languages::readable::Readable;
use crate::languages::unknown;
use crate::languages::walked::cached_frames::WalkedFrame;
use crate::languages::walked::learned::Learned;
use crate::languages::walked::{Described, Dialect, Position, Walk, Walked};
use crate::modules::interpreters::LUA as EXPORTS;

pub(crate) use interpreter::RunningInstruction;
pub(crate) use threads::{Slots, Threads};

static EVAL: Learned = Learned::new();
/// Index of the layout, plus one; 0: LuaJIT's.
static LAYOUT: AtomicUsize = AtomicUsize::new(0);

/// The original Lua.
pub(super) struct Lua;
/// LuaJIT.
pub(super) struct LuaJit;

fn learn(natives: &[Frame], runs: usize) {
    EVAL.learn(natives, runs, EXPORTS.new_state.load(Relaxed));
}

impl Dialect for Lua {
    const NUMBER: u8 = LANGUAGE_LUA;
    const LOOKS_OUTWARDS: bool = true;
    const IS_BY_NATIVES: bool = true;

    fn evaluates() -> (usize, usize) {
        EVAL.range()
    }

    fn learn(natives: &[Frame], runs: usize) {
        learn(natives, runs);
    }

    fn look() -> bool {
        let is_there = EXPORTS.new_state.load(Acquire) != 0 && EXPORTS.is_luajit.load(Relaxed) == 0;
        if !is_there || EXPORTS.is_seen.swap(1, Relaxed) != 0 {
            return false;
        }
        let release = layout::release(EXPORTS.ident.load(Relaxed), EXPORTS.ident_bytes.load(Relaxed));
        let number = release.and_then(layout::number_of);
        if number.is_none() {
            unknown::note(LANGUAGE_LUA, release.map_or(0, |[major, minor, _]| major << 8 | minor));
        }
        LAYOUT.store(number.map_or(0, |number| number.wrapping_add(1)), Relaxed);
        number.is_some()
    }

    #[inline(always)]
    fn first(walk: &mut Walk) -> Option<Position> {
        let layout = layout::by_number(LAYOUT.load(Relaxed))?;
        walk.slots.forget_before(EVAL.times());
        threads::follow(walk, &layout.thread);
        interpreter::first(walk, layout)
    }

    fn step(walk: &mut Walk, position: Position) -> Option<(Walked, Position)> {
        interpreter::step(walk, layout::by_number(LAYOUT.load(Relaxed))?, position)
    }

    #[inline(always)]
    unsafe fn is_same(walk: &mut Walk, frame: &WalkedFrame, next: Position) -> bool {
        match layout::by_number(LAYOUT.load(Relaxed)) {
            // SAFETY: the caller's condition.
            Some(layout) => unsafe { interpreter::is_same(walk, layout, frame, next) },
            None => false,
        }
    }

    fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
        interpreter::describe(readable, layout::by_number(LAYOUT.load(Relaxed))?, walked, out)
    }
}

impl Dialect for LuaJit {
    const NUMBER: u8 = LANGUAGE_LUA;
    const IS_BY_NATIVES: bool = true;

    fn evaluates() -> (usize, usize) {
        EVAL.range()
    }

    fn learn(natives: &[Frame], runs: usize) {
        learn(natives, runs);
    }

    fn look() -> bool {
        let is_there = EXPORTS.new_state.load(Acquire) != 0 && EXPORTS.is_luajit.load(Relaxed) != 0;
        is_there && EXPORTS.is_seen.swap(1, Relaxed) == 0
    }

    fn first(walk: &mut Walk) -> Option<Position> {
        walk.slots.forget_before(EVAL.times());
        threads::follow(walk, &luajit::THREAD);
        luajit::first(walk, None)
    }

    fn step(walk: &mut Walk, position: Position) -> Option<(Walked, Position)> {
        luajit::step(walk, position)
    }

    /// (LuaJIT's blocks come from its own allocator, so that there are few events: each frame is
    /// read again.)
    unsafe fn is_same(_: &mut Walk, _: &WalkedFrame, _: Position) -> bool {
        false
    }

    fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()> {
        luajit::describe(readable, walked, out)
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
            if number == 0 {
                describe_anything::<LuaJit>(2_000);
            } else {
                describe_anything::<Lua>(2_000);
            }
        }
        LAYOUT.store(0, Relaxed);
    }
}
