//! Joins the native and the language's stack: puts the language frames where the native frames are
//! that run them.
//!
//! Each run of language frames belongs to one call of the evaluating function, and is inwards of
//! it. The call is recognised by an address in it: the native frame in whose part of the stack the
//! address lies. The joined stack is a function of the two stacks, so its node is found by their
//! hashes. The frames are joined only for a new pair.

use core::sync::atomic::Ordering::Relaxed;

use crate::frames::frame::{Frame, Start};
use crate::languages::path::Path;
use crate::languages::python::cached_frames::CachedPython;
use crate::languages::python::frame::PythonFrame;
use crate::languages::python::layout::{self, Layout, Style};
use crate::languages::verifying;
use crate::modules::interpreters::PYTHON;
use crate::record::thread::Scope;
use crate::stack;
use crate::state::AGENT;
use crate::tree;

/// Returns the node of the stack that begins at `start`, with the language frames.
#[inline(always)]
pub(crate) fn node(scope: &mut Scope, start: Start, native: u32) -> u32 {
    let Some(layout) = layout::chosen().filter(|_| native != tree::ROOT) else { return native };
    if scope.level().language.is_null() {
        scope.level().language = CachedPython::allocate().cast();
    }
    // SAFETY: null, or a mapping of this level alone, which is never unmapped.
    let Some(kept) = (unsafe { scope.level().language.cast::<CachedPython>().as_mut() }) else {
        AGENT.count(|slot| &slot.stacks_lost);
        return native;
    };
    kept.follow(scope, layout);
    if kept.hash() != 0 && verifying::is_due(scope) {
        verifying::count(kept.hash(), kept.hash_anew(scope, layout));
    }
    match kept.pairs.find(native, kept.hash()) {
        Ok(node) => node,
        Err(pair) => build(scope, kept, layout, (start, native, pair)),
    }
}

/// Joins the frames of both stacks, and makes the node.
#[cold]
#[inline(never)]
fn build(
    scope: &mut Scope,
    kept: &mut CachedPython,
    layout: &Layout,
    (start, native, pair): (Start, u32, u64),
) -> u32 {
    stack::settle(scope, start, native);
    let native_kept = &scope.level().kept;
    // SAFETY: `depth` frames are cached, and no code here changes them.
    let natives = unsafe { core::slice::from_raw_parts(native_kept.frames, native_kept.depth) };
    let (frames, joins) = kept.find_joins(layout);
    if layout.style == Style::Objects {
        join_by_function(natives, joins);
    }
    let is_shown = |frame: &&PythonFrame| frame.place != 0;
    let total = natives.len().wrapping_add(frames.iter().filter(is_shown).count());
    let mut path = Path::of_frames(total);
    let mut runs = frames.iter().zip(joins.iter()).peekable();
    let mut add_runs = |path: &mut Path, lowest: usize| {
        while let Some((frame, _)) = runs.next_if(|&(_, &join)| join >= lowest) {
            if frame.place != 0 {
                // Plus one, like a return address, which lies after its call.
                path.add(frame.place.wrapping_add(1));
            }
        }
    };
    if let Some(outermost) = natives.first() {
        add_runs(&mut path, outermost.sp);
    }
    for frame in natives {
        path.add(frame.pc as u64);
        add_runs(&mut path, frame.sp);
    }
    add_runs(&mut path, 0);
    let Some(node) = path.finish(pair) else { return native };
    kept.pairs.keep(pair, node);
    node
}

/// Finds the native frame of each language frame: each is one call of the evaluating function, and
/// the innermost one is the innermost call.
fn join_by_function(natives: &[Frame], joins: &mut [usize]) {
    let evaluates = |frame: &&Frame| {
        let call = frame.pc.wrapping_sub(1);
        call >= PYTHON.eval.load(Relaxed) && call < PYTHON.eval_end.load(Relaxed)
    };
    let mut calls = natives.iter().rev().filter(evaluates);
    for join in joins.iter_mut().rev() {
        *join = calls.next().map_or(usize::MAX, |frame| frame.sp);
    }
}
