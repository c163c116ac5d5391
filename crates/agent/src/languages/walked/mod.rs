//! Languages whose interpreter's frames are walked: the interpreter has them in a list or an array.
//! The thread's last frames are cached, and compared with the interpreter's memory at each event.
//!
//! The function and line of a frame's code and instruction are cached, with words that distinguish
//! the code from other code at its address. A run of frames belongs to one call of the
//! interpreter's evaluating function: the innermost run to the innermost call.

mod cached_frames;
mod describing;
mod learned;
pub(crate) mod lua;
pub(crate) mod perl;
pub(crate) mod php;
pub(crate) mod ruby;

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::frames::frame::{Frame, Start};
use crate::languages::joined_runs::{self, RunFrame};
use crate::languages::level_cache;
use crate::languages::pairs::Pair;
use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::verifying;
use crate::languages::walked::cached_frames::{CachedWalk, WalkedFrame};
use crate::record::thread::{Scope, ScopeHandle};
use crate::stack;
use crate::tree;

/// A frame as the interpreter has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub(crate) struct Walked {
    /// The code that runs in the frame; for a frame that is not shown, its kind.
    pub(crate) code: usize,
    /// Value that distinguishes the code from other code at its address.
    pub(crate) check: usize,
    /// The instruction.
    pub(crate) at: usize,
    /// Further data of the frame that must be unchanged, or the code of the caller.
    pub(crate) more: usize,
    /// The caller's instruction, if that gives the function's name.
    pub(crate) calls: usize,
    /// Whether the frame is the outermost one of its call of the evaluating function.
    pub(crate) is_entry: bool,
    /// Whether the frame is of a function of the language.
    pub(crate) is_shown: bool,
}

/// Position of a frame, as far as its dialect needs it to continue from there.
pub(crate) type Position = [usize; 3];
/// Position outwards of the outermost frame.
pub(crate) const END: Position = [0; 3];

/// Function and line of a frame.
#[derive(Debug)]
pub(crate) struct Described<'a> {
    pub(crate) name: Text<'a>,
    pub(crate) file: Text<'a>,
    pub(crate) first_line: u32,
    pub(crate) line: u32,
}

/// State for walking the frames of an event: readable memory, and the native stack. All zero: no
/// event yet.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Walk {
    pub(crate) readable: Readable,
    pub(crate) start: Start,
    /// Node of the native frames.
    pub(crate) native: u32,
    pub(crate) slots: lua::Slots,
    pub(crate) threads: lua::Threads,
    pub(crate) running: lua::RunningInstruction,
}

/// An interpreter whose frames are walked.
pub(crate) trait Dialect {
    const NUMBER: u8;
    /// Whether a frame depends on the one outwards. Then `more` is the outer one's code and `calls`
    /// the outer one's instruction, unless the second words of their positions differ.
    const LOOKS_OUTWARDS: bool = false;
    /// True for languages whose frames are found by the native stack. The nodes of native stacks
    /// without them are cached then.
    const IS_BY_NATIVES: bool = false;
    /// Returns the position of the innermost frame of the calling thread; `None` or [`END`] if it
    /// has no frames.
    fn first(walk: &mut Walk) -> Option<Position>;
    /// Returns the frame at a position, and the position of the one outwards; `None` if it cannot
    /// be read.
    fn step(walk: &mut Walk, position: Position) -> Option<(Walked, Position)>;
    /// True if [`Dialect::step`] would give the same frame, and this position outwards of it
    /// (heapr's tests `scripts` compare them). A wrong `false` is allowed.
    ///
    /// # Safety
    /// 1. The frame was read from its position, and the thread's stack leads there now.
    unsafe fn is_same(walk: &mut Walk, frame: &WalkedFrame, next: Position) -> bool;
    /// Writes a frame's function and line to `out`.
    fn describe(readable: &mut Readable, walked: &Walked, out: &mut Described<'_>) -> Option<()>;
    /// Returns begin and end of the evaluating function.
    fn evaluates() -> (usize, usize);
    /// Learns that range from a stack with so many runs of frames, if no module exports it.
    fn learn(_natives: &[Frame], _runs: usize) {}
    /// True if an interpreter of this language with a known layout is found that was not there
    /// before.
    fn look() -> bool;
}

/// The dialect of the process.
static CHOSEN: AtomicUsize = AtomicUsize::new(NONE);
const NONE: usize = 0;
const RUBY: usize = 1;
const PHP: usize = 2;
const PERL: usize = 3;
const LUA: usize = 4;
const LUAJIT: usize = 5;

/// True if an interpreter of one of these languages is found that was not there before.
pub(super) fn look() -> bool {
    let found = if ruby::Ruby::look() {
        RUBY
    } else if php::Php::look() {
        PHP
    } else if perl::Perl::look() {
        PERL
    } else if lua::Lua::look() {
        LUA
    } else if lua::LuaJit::look() {
        LUAJIT
    } else {
        NONE
    };
    CHOSEN.store(found, Relaxed);
    found != NONE
}

/// Returns the node of the stack that begins at `start`, with the language's frames.
#[inline(always)]
pub(super) fn node(handle: ScopeHandle, (pc, sp, bp): (usize, usize, usize), native: u32) -> u32 {
    match CHOSEN.load(Relaxed) {
        RUBY => node_of::<ruby::Ruby>(handle, pc, sp, bp, native),
        PHP => node_of::<php::Php>(handle, pc, sp, bp, native),
        PERL => node_of::<perl::Perl>(handle, pc, sp, bp, native),
        LUA => node_of::<lua::Lua>(handle, pc, sp, bp, native),
        LUAJIT => node_of::<lua::LuaJit>(handle, pc, sp, bp, native),
        _ => native,
    }
}

/// True if the native stack of a node is known to have no frames of the language.
#[inline(always)]
pub(super) fn has_none(scope: &mut Scope, native: u32) -> bool {
    // SAFETY: null, or the level's cache, which is of this type in a process with such a language.
    let kept = unsafe { scope.level().language.cast::<CachedWalk>().as_ref() };
    kept.is_some_and(|kept| kept.walk.slots.has_none(native))
}

#[inline(never)]
fn node_of<D: Dialect>(handle: ScopeHandle, pc: usize, sp: usize, bp: usize, native: u32) -> u32 {
    if native == tree::ROOT {
        return native;
    }
    let (scope, start) = (&mut *handle.scope(), Start { pc, sp, bp });
    // SAFETY: all zero is an empty cache, the only one of a process with this language.
    let Some(kept) = (unsafe { level_cache::of_level::<CachedWalk>(scope) }) else { return native };
    (kept.walk.start, kept.walk.native) = (start, native);
    let had_none = D::IS_BY_NATIVES && kept.walk.slots.has_none(native);
    kept.follow::<D>(scope);
    if (kept.hash() != 0 || D::IS_BY_NATIVES) && verifying::is_due(scope) {
        let hash = if had_none { 0 } else { kept.hash() };
        kept.forget();
        kept.follow::<D>(scope);
        verifying::count(hash, kept.hash());
    }
    match kept.pairs.find(native, kept.hash()) {
        Ok(node) => node,
        Err(pair) => build::<D>(scope, kept, (start, native, pair)),
    }
}

/// Joins the frames of both stacks, and makes the node.
#[cold]
#[inline(never)]
fn build<D: Dialect>(
    scope: &mut Scope,
    kept: &mut CachedWalk,
    (start, native, pair): (Start, u32, Pair),
) -> u32 {
    stack::settle(scope, start, native);
    // SAFETY: no code here changes the cached stack.
    let natives = unsafe { level_cache::natives(scope) };
    D::learn(natives, kept.runs());
    let (low, high) = D::evaluates();
    let evaluates = |frame: &&Frame| frame.pc > low && frame.pc <= high;
    kept.join(natives.iter().rev().filter(evaluates).map(|frame| frame.sp));
    let shown = kept.shown();
    let (frames, pairs) = kept.frames_and_pairs();
    let runs = frames.iter().map(|frame| RunFrame { place: frame.place, join: frame.join });
    joined_runs::join(natives, (runs, shown), (pairs, pair)).unwrap_or(native)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Describes frames whose code lies in memory with arbitrary contents: numbers, addresses in
    /// it, and other values.
    pub(crate) fn describe_anything<D: Dialect>(rounds: u64) {
        const WORDS: usize = 1024;
        let mut memory = vec![0_u64; WORDS];
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state >> 17
        };
        // SAFETY: all zero is a valid value.
        let mut readable: Readable = unsafe { core::mem::zeroed() };
        for _ in 0..rounds {
            let first = memory.as_ptr().addr() as u64;
            for word in &mut memory {
                let value = random();
                *word = match random() % 8 {
                    0..=2 => first + value % WORDS as u64 * 8,
                    3..=5 => value % 64,
                    6 => value % 0x1_0001_0001,
                    _ => value << 17 | value,
                };
            }
            let mut place = || first as usize + random() as usize % WORDS * 8;
            let frame =
                Walked { code: place(), at: place(), more: place(), calls: place(), ..Walked::default() };
            let (mut name, mut file) = ([0; 64], [0; 64]);
            let mut out = Described {
                name: Text { out: &mut name, bytes: 0 },
                file: Text { out: &mut file, bytes: 0 },
                first_line: 0,
                line: 0,
            };
            let _ = D::describe(&mut readable, &frame, &mut out);
            assert!(out.name.bytes <= 64 && out.file.bytes <= 64);
        }
    }

    #[test]
    fn memory_of_any_kind_is_described_or_not() {
        describe_anything::<ruby::Ruby>(2_000);
        describe_anything::<php::Php>(2_000);
        describe_anything::<perl::Perl>(2_000);
    }
}
