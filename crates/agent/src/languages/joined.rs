//! Joins the native and the Python stack: puts the Python frames where the native frames are that
//! run them.

use core::sync::atomic::Ordering::Relaxed;

use crate::frames::frame::{Frame, Start};
use crate::languages::joined_runs::{self, RunFrame};
use crate::languages::level_cache;
use crate::languages::pairs::Pair;
use crate::languages::python::cached_frames::CachedPython;
use crate::languages::python::layout::{self, Layout, Style};
use crate::languages::verifying;
use crate::modules::interpreters::PYTHON;
use crate::record::thread::{Scope, ScopeHandle};
use crate::stack;
use crate::tree;

/// Fast path of [`node`] if no stack is verified.
#[inline(never)]
pub(crate) fn node_plainly(handle: ScopeHandle, pc: usize, sp: usize, bp: usize, native: u32) -> u32 {
    node::<true>(&mut handle.scope(), Start { pc, sp, bp }, native)
}

/// Returns the node of the stack that begins at `start`, with the language frames.
///
/// `IS_PLAIN`: no stack is verified.
#[inline(always)]
pub(crate) fn node<const IS_PLAIN: bool>(scope: &mut Scope, start: Start, native: u32) -> u32 {
    let Some(layout) = layout::chosen().filter(|_| native != tree::ROOT) else { return native };
    // SAFETY: all zero is an empty cache, the only one of a process with Python.
    let Some(kept) = (unsafe { level_cache::of_level::<CachedPython>(scope) }) else { return native };
    kept.follow(scope, layout);
    if !IS_PLAIN && kept.hash() != 0 && verifying::is_due(scope) {
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
    (start, native, pair): (Start, u32, Pair),
) -> u32 {
    stack::settle(scope, start, native);
    // SAFETY: no code here changes the cached stack.
    let natives = unsafe { level_cache::natives(scope) };
    let (frames, joins, pairs) = kept.find_joins(layout);
    if layout.style == Style::Objects {
        join_by_function(natives, joins);
    }
    let shown = frames.iter().filter(|frame| frame.place != 0).count();
    let runs = frames.iter().zip(joins.iter());
    let runs = runs.map(|(frame, &join)| RunFrame { place: frame.place, join });
    joined_runs::join(natives, (runs, shown), (pairs, pair)).unwrap_or(native)
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
