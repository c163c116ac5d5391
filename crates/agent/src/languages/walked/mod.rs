//! Frames of languages whose interpreters keep them in a list or an array: read as a whole at each
//! event, as there are few words to each.
//!
//! What a frame's code and instruction stand for is remembered, with words that tell the code from
//! another at its address. A run of frames belongs to one call of the interpreter's evaluating
//! function: the innermost run to the innermost call.

mod kept;
mod perl;
mod php;
mod ruby;

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::frames::frame::{Frame, Start};
use crate::languages::joined::pair_hash;
use crate::languages::path::Path;
use crate::languages::readable::Readable;
use crate::languages::text::Text;
use crate::languages::walked::kept::KeptWalk;
use crate::record::thread::Scope;
use crate::stack;
use crate::state::AGENT;
use crate::tree;

/// A frame as an interpreter has it.
#[derive(Debug, Clone, Copy)]
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

/// A language.
#[derive(Debug)]
pub(crate) struct Dialect {
    number: u8,
    /// Calls back with each frame of the calling thread, the innermost first, until it says no.
    walk: fn(&mut Readable, &mut dyn FnMut(Walked) -> bool),
    /// What a frame stands for.
    describe: fn(&mut Readable, &Walked, &mut Described<'_>) -> Option<()>,
    /// Where the evaluating function begins and ends.
    evaluates: fn() -> (usize, usize),
    /// Whether there is an interpreter of it with a known layout.
    look: fn() -> bool,
}

static DIALECTS: [&Dialect; 3] = [&ruby::RUBY, &php::PHP, &perl::PERL];
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
    kept.follow(scope, dialect);
    if stack::is_special() {
        verify(scope, kept, dialect);
    }
    if kept.hash() == 0 {
        return native;
    }
    let pair = pair_hash(native, kept.hash());
    let &mut (known, node) = kept.pair(pair);
    if known == pair {
        return node;
    }
    let node = tree::find(pair).unwrap_or_else(|| build(scope, kept, dialect, (start, native, pair)));
    if node != native {
        *kept.pair(pair) = (pair, node);
    }
    node
}

/// Compares what was remembered of the frames with another look, as often as the session says.
#[cold]
#[inline(never)]
fn verify(scope: &mut Scope, kept: &mut KeptWalk, dialect: &Dialect) {
    let every = AGENT.pool().map_or(0, |pool| pool.control().verify_every.load(Relaxed));
    if every == 0 || kept.hash() == 0 || !scope.level().kept.capture_count.is_multiple_of(every) {
        return;
    }
    AGENT.count(|slot| &slot.verify_count);
    let hash = kept.hash();
    kept.forget_answers();
    kept.follow(scope, dialect);
    if kept.hash() != hash {
        AGENT.count(|slot| &slot.verify_mismatch_count);
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
    let (low, high) = (dialect.evaluates)();
    let evaluates = |frame: &&Frame| frame.pc > low && frame.pc <= high;
    kept.join(natives.iter().rev().filter(evaluates).map(|frame| frame.sp));
    let mut path = Path::of_frames(natives.len().wrapping_add(kept.shown()));
    let mut frames = kept.frames().iter().rev().peekable();
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
    path.finish(pair).unwrap_or(native)
}
