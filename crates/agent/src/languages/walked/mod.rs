//! Frames of languages whose interpreters keep them in a list or an array: read as a whole at each
//! event, as there are few words to each, and compared with the thread's last ones.
//!
//! What a frame's code and instruction stand for is kept, with words that tell the code from
//! another at its address. A run of frames belongs to one call of the interpreter's evaluating
//! function: the innermost run to the innermost call.

mod kept;
mod learned;
mod lua;
mod perl;
mod php;
mod ruby;

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::frames::frame::{Frame, Start};
use crate::languages::path::Path;
use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::verifying;
use crate::languages::walked::kept::KeptWalk;
use crate::record::thread::Scope;
use crate::stack;
use crate::state::AGENT;
use crate::tree;

/// A frame as an interpreter has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Walked {
    /// What runs in it; 0: nothing that is shown.
    pub(crate) code: usize,
    /// Tells it from other code at its address.
    pub(crate) check: usize,
    /// The instruction.
    pub(crate) at: usize,
    /// The outermost frame of its call of the evaluating function.
    pub(crate) is_entry: bool,
}

/// Function and line of a frame.
#[derive(Debug)]
pub(crate) struct Described<'a> {
    pub(crate) name: Text<'a>,
    pub(crate) file: Text<'a>,
    pub(crate) first_line: u32,
    pub(crate) line: u32,
}

/// An event whose frames are walked: what can be read, and the native stack.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    pub(crate) readable: &'a mut Readable,
    pub(crate) start: Start,
    /// The node of its native frames.
    pub(crate) native: u32,
    pub(crate) slots: &'a mut lua::Slots,
}

/// A language.
#[derive(Debug)]
pub(crate) struct Dialect {
    number: u8,
    /// Calls back with each frame of the calling thread, the innermost first, until it says no.
    walk: fn(&mut Walk<'_>, &mut dyn FnMut(Walked) -> bool),
    /// What a frame stands for.
    describe: fn(&mut Readable, &Walked, &mut Described<'_>) -> Option<()>,
    /// Where the evaluating function begins and ends.
    evaluates: fn() -> (usize, usize),
    /// Finds out where that is, on a stack with so many runs of frames, if no module has said it.
    learn: fn(&[Frame], usize),
    /// Whether there is an interpreter of it with a known layout.
    look: fn() -> bool,
}

static DIALECTS: [&Dialect; 4] = [&ruby::RUBY, &php::PHP, &perl::PERL, &lua::LUA];
/// The number of the one that is spoken, plus one.
static CHOSEN: AtomicUsize = AtomicUsize::new(0);

/// Whether there is an interpreter of one of them that was not there before.
pub(super) fn look() -> bool {
    let found = DIALECTS.iter().position(|dialect| (dialect.look)());
    CHOSEN.store(found.map_or(0, |found| found.wrapping_add(1)), Relaxed);
    found.is_some()
}

/// The node of the stack that begins at `start`, with the language's frames.
pub(super) fn node(scope: &mut Scope, start: Start, native: u32) -> u32 {
    let chosen = CHOSEN.load(Relaxed).checked_sub(1).and_then(|chosen| DIALECTS.get(chosen));
    let Some(dialect) = chosen.filter(|_| native != tree::ROOT) else { return native };
    if scope.level().language.is_null() {
        scope.level().language = KeptWalk::allocate().cast();
    }
    // SAFETY: null, or a mapping of this level alone, which is never unmapped.
    let Some(kept) = (unsafe { scope.level().language.cast::<KeptWalk>().as_mut() }) else {
        AGENT.count(|slot| &slot.stacks_lost);
        return native;
    };
    kept.follow(scope, dialect, (start, native));
    if kept.hash() != 0 && verifying::is_due(scope) {
        let hash = kept.hash();
        kept.forget(native);
        kept.follow(scope, dialect, (start, native));
        verifying::count(hash, kept.hash());
    }
    match kept.pairs.find(native, kept.hash()) {
        Ok(node) => node,
        Err(pair) => build(scope, kept, dialect, (start, native, pair)),
    }
}

/// Lays the frames of both together.
#[cold]
#[inline(never)]
fn build(
    scope: &mut Scope,
    kept: &mut KeptWalk,
    dialect: &Dialect,
    (start, native, pair): (Start, u32, u64),
) -> u32 {
    stack::settle(scope, start, native);
    let native_kept = &scope.level().kept;
    // SAFETY: `depth` frames are kept, and nothing here changes them.
    let natives: &[Frame] = unsafe { core::slice::from_raw_parts(native_kept.frames, native_kept.depth) };
    (dialect.learn)(natives, kept.runs());
    let (low, high) = (dialect.evaluates)();
    let evaluates = |frame: &&Frame| frame.pc > low && frame.pc <= high;
    kept.join(natives.iter().rev().filter(evaluates).map(|frame| frame.sp));
    let mut path = Path::of_frames(natives.len().wrapping_add(kept.shown()));
    let mut frames = kept.frames().iter().peekable();
    let mut add = |path: &mut Path, lowest: usize| {
        while let Some(frame) = frames.next_if(|frame| frame.join >= lowest) {
            if frame.place != 0 {
                // As of a call, which lies before it.
                path.add(frame.place.wrapping_add(1));
            }
        }
    };
    if let Some(outermost) = natives.first() {
        add(&mut path, outermost.sp.saturating_add(1));
    }
    for frame in natives {
        path.add(frame.pc as u64);
        add(&mut path, frame.sp);
    }
    add(&mut path, 0);
    let Some(node) = path.finish(pair) else { return native };
    kept.pairs.keep(pair, node);
    node
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Describes frames whose code lies in memory that holds anything: numbers, addresses in it,
    /// and others.
    pub(crate) fn describe_anything(dialect: &Dialect, rounds: u64) {
        const WORDS: usize = 1024;
        let mut memory = vec![0_u64; WORDS];
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            state >> 17
        };
        // SAFETY: all zero is a valid one.
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
            let frame = Walked { code: place(), check: 0, at: place(), is_entry: false };
            let (mut name, mut file) = ([0; 64], [0; 64]);
            let mut out = Described {
                name: Text { out: &mut name, bytes: 0 },
                file: Text { out: &mut file, bytes: 0 },
                first_line: 0,
                line: 0,
            };
            let _ = (dialect.describe)(&mut readable, &frame, &mut out);
            assert!(out.name.bytes <= 64 && out.file.bytes <= 64);
        }
    }

    #[test]
    fn memory_of_any_kind_is_described_or_not() {
        for dialect in DIALECTS {
            describe_anything(dialect, 2_000);
        }
    }
}
