//! Capturing the caller's stack, at the cost of what changed since the thread's last one.
//!
//! Unwinding a frame is a pure function of its state (pc, sp, bp) and of the stack words that its
//! rule reads. The last stack is cached with the state of each frame and the (address, value) of
//! each word read:
//!
//! ```text
//! frames   outermost                                   innermost
//!          [0: start_thread] [1: main] [2: f] [3: g]
//! words    |w0 w1|           |w2|      |w3 w4||w5|
//! ```
//! The words of frame i end at `frames[i].words_end`.
//!
//! A new stack is unwound from the innermost frame until its state equals that of a cached frame.
//! Then the words from that frame outwards are read again and compared. If all are equal, the rest
//! is proven to be what a full unwind would give, and its node is known. If frame j has changed,
//! all frames inwards of j are still valid, and unwinding continues from j.
//!
//! **The frame pointer** is part of a state only if a rule reads it before a rule further out
//! restores it (`needs_bp`). In code compiled without frame pointers it is a register like any
//! other, with another value each time. There it is not compared, and the words in which it was
//! saved are not cached. Whether it is needed depends on the frames further out. So when those
//! change, unwinding continues from a frame whose own rule settles it:
//!
//! ```text
//! rule            needs_bp                      settles_bp
//! reads bp        yes                           yes
//! restores bp     no                            yes
//! neither         as the caller's               no
//! ```
//!
//! The functions that capture a stack, and the order in which they call each other. Each returns
//! the stack's node, or hands over to the next function if it cannot prove the stack:
//!
//! ```text
//! function           is for                                   continues with
//! capture            any stack                                capture_as
//! capture_plainly    any stack, if nothing special is wanted  capture_as
//! capture_as         the thread's own stack, one is cached    capture_at_top, capture_by_suffix;
//!                                                             else capture_elsewhere
//! capture_elsewhere  another stack, or none is cached         capture_at_top, capture_by_suffix;
//!                                                             else capture_anew
//! capture_at_top     a start that is the cached stack's       its node; else capture_changed
//! capture_changed    such a start, a word has changed         repair; else capture_by_suffix
//! capture_by_suffix  another start                            suffix_cache; else unwind_again,
//!                                                             unwind_onto_kept
//! unwind_again       a suffix that repeats                    unwind_onto_kept
//! unwind_onto_kept   frames out to the cached stack           plain_frames; else any_frames
//! capture_anew       a stack without proof by a cached frame  any_frames
//! ```
//!
//! Whichever path is taken, the frames must be those of a full unwind ([`verify`]). With
//! `HEAPR_VERIFY` each stack is compared with one; heapr's test `victims` does so for the programs
//! that say `verify` in their header.

pub(crate) mod any_frames;
pub(crate) mod plain_frames;
pub(crate) mod repair;
pub(crate) mod suffix_cache;
pub(crate) mod verify;

use core::sync::atomic::Ordering::Relaxed;

use heapr_ring::Pool;
use heapr_wire::FLAG_STACK_SPECIAL;

use crate::arch::Rule;
use crate::frames::cached_stack::{CUT_MEMO, CachedStack, is_surely_within, is_within};
use crate::frames::frame::{Frame, Start};
use crate::frames::shortcut::Shortcuts;
use crate::frames::stack_range::StackRange;
use crate::frames::suffix::StackSuffix;
use crate::modules::{self, rules};
use crate::record::thread::{Scope, ScopeHandle};
use crate::stack::suffix_cache::Recent;
use crate::stack::verify::Hashed;
use crate::state::AGENT;
use crate::tree;

/// Returns the node of the stack that begins at `start`.
///
/// (All functions that capture a stack take their arguments in registers: where a scope is passed
/// by address, each call stores its fields.)
#[inline(never)]
pub(crate) fn capture(scope: &mut Scope, start: Start) -> u32 {
    if is_special() { capture_as::<true>(scope, start) } else { capture_as::<false>(scope, start) }
}

/// Fast path of [`capture`] if [`is_special`] is false; must return the same node. heapr's test
/// `victims` compares both with full unwinds.
#[inline(always)]
pub(crate) fn capture_plainly(scope: &mut Scope, start: Start) -> u32 {
    capture_as::<false>(scope, start)
}

#[inline(always)]
fn capture_as<const IS_SPECIAL: bool>(scope: &mut Scope, start: Start) -> u32 {
    let Start { pc, sp, bp } = start;
    let handle = scope.handle();
    let own = scope.state().ranges.own();
    let kept = &mut scope.level().kept;
    let is_provable = kept.proof_epoch == AGENT.code_epoch.load(Relaxed);
    // Nearly all stacks meet these conditions. For the rest `capture_elsewhere` checks the same
    // with slower means.
    if sp < own.high && sp >= own.low && is_provable && is_surely_within(kept, own.high) {
        kept.capture_count = kept.capture_count.wrapping_add(1);
        if top(kept).is_at(start) {
            capture_at_top::<IS_SPECIAL>(handle, pc, sp, bp)
        } else {
            capture_by_suffix::<IS_SPECIAL>(handle, pc, sp, bp, own.high)
        }
    } else {
        capture_elsewhere::<IS_SPECIAL>(handle, pc, sp, bp)
    }
}

/// Captures a stack that is not on the thread's own stack, or when no stack is cached.
#[inline(never)]
fn capture_elsewhere<const IS_SPECIAL: bool>(handle: ScopeHandle, pc: usize, sp: usize, bp: usize) -> u32 {
    let mut scope = handle.scope();
    // A forked child's thread must first learn whose stack it is on.
    scope.state().revive();
    let range = range_of(&mut scope, sp);
    let own = scope.state().ranges.own();
    let kept = &mut scope.level().kept;
    kept.capture_count = kept.capture_count.wrapping_add(1);
    if kept.proof_epoch != AGENT.code_epoch.load(Relaxed) || !is_within(kept, range, own) {
        return capture_anew(handle, pc, sp, bp);
    }
    if top(kept).is_at(Start { pc, sp, bp }) {
        capture_at_top::<IS_SPECIAL>(handle, pc, sp, bp)
    } else {
        capture_by_suffix::<IS_SPECIAL>(handle, pc, sp, bp, range.high)
    }
}

/// Returns the stack that `sp` lies on.
#[inline(always)]
fn range_of(scope: &mut Scope, sp: usize) -> StackRange {
    let is_main = scope.state().is_main;
    scope.state().ranges.find(sp, is_main)
}

/// Returns the innermost frame of the cached stack, which must exist.
#[inline(always)]
fn top(kept: &CachedStack) -> &Frame {
    // SAFETY: a stack is cached, of `depth` frames, and that is at most the capacity.
    unsafe { kept.frame(kept.depth.wrapping_sub(1)) }
}

/// Returns the cached stack's node for a stack with the same start, if all words are unchanged or
/// the stack can be repaired. The cached words must be readable.
#[inline(never)]
fn capture_at_top<const IS_SPECIAL: bool>(handle: ScopeHandle, pc: usize, sp: usize, bp: usize) -> u32 {
    let mut scope = handle.scope();
    let kept = &mut scope.level().kept;
    kept.last_suffix = core::ptr::null();
    // SAFETY: the words lie on the current stack, outwards of its stack pointer.
    let change = unsafe { kept.first_change(top(kept).words_end as usize) };
    if change == 0 {
        let node = kept.node;
        return if IS_SPECIAL { finish(&mut scope, node, Start { pc, sp, bp }) } else { node };
    }
    capture_changed::<IS_SPECIAL>(handle, pc, sp, bp, change)
}

/// Slow path of [`capture_at_top`]: the innermost changed word is the one before number `change`.
#[inline(never)]
fn capture_changed<const IS_SPECIAL: bool>(
    handle: ScopeHandle,
    pc: usize,
    sp: usize,
    bp: usize,
    change: usize,
) -> u32 {
    let mut scope = handle.scope();
    let range = range_of(&mut scope, sp);
    if range != scope.state().ranges.own() && scope.level().kept.inner_high != 0 {
        // A stack that spans two is not repaired.
        return capture_by_suffix::<IS_SPECIAL>(handle, pc, sp, bp, range.high);
    }
    // SAFETY: a stack is cached, and `change` is one of its words.
    match unsafe { repair::repair(handle, range, change) } {
        Some(node) if IS_SPECIAL => finish(&mut scope, node, Start { pc, sp, bp }),
        Some(node) => node,
        None => capture_by_suffix::<IS_SPECIAL>(handle, pc, sp, bp, range.high),
    }
}

/// Returns the node to report for the cached stack, after verifying or cutting it if the session
/// says so.
#[inline(always)]
pub(crate) fn finish(scope: &mut Scope, node: u32, start: Start) -> u32 {
    if !is_special() {
        return node;
    }
    let kept = &scope.level().kept;
    // SAFETY: `depth` frames are cached, and are not changed until `finish_specially` has returned.
    let frames = unsafe { core::slice::from_raw_parts(kept.frames, kept.depth) };
    // Since the stack was begun, modules may have been found that change the salt.
    let salt = modules::salt();
    let hashed = (kept.first_salt == salt).then_some(Hashed { path_hash: kept.path_hash, salt });
    finish_specially(scope, node, start, frames, hashed)
}

/// True if stacks must be verified or cut.
#[inline(always)]
pub(crate) fn is_special() -> bool {
    AGENT.pool().is_some_and(|pool| pool.control().flags.load(Relaxed) & FLAG_STACK_SPECIAL != 0)
}

/// Compares `frames` with a full unwind (and with the hash by which their node was found, if
/// known), or cuts them, as the session says.
#[cold]
#[inline(never)]
pub(crate) fn finish_specially(
    scope: &mut Scope,
    node: u32,
    start: Start,
    frames: &[Frame],
    hashed: Option<Hashed>,
) -> u32 {
    let (is_main, ranges) = (scope.state().is_main, scope.state().ranges);
    let Some(control) = AGENT.pool().map(Pool::control) else { return node };
    let verify_every = control.verify_every.load(Relaxed);
    let max_frames = control.max_frames.load(Relaxed) as usize;
    let kept = &mut scope.level().kept;
    if verify_every != 0 && kept.capture_count.is_multiple_of(verify_every) && !frames.is_empty() {
        // (Called from here, and so on the program's stack.)
        verify::compare(frames, hashed, start, is_main, ranges);
    }
    if max_frames == 0 || frames.len() <= max_frames {
        return node;
    }
    let place = (node as usize) % CUT_MEMO;
    if let Some(&(whole, cut)) = kept.cut_memo.get(place)
        && whole == node
        && node != tree::ROOT
    {
        return cut;
    }
    let (mut cut, mut hash) = (tree::ROOT, tree::ROOT_HASH);
    let first = frames.len().wrapping_sub(max_frames);
    for (index, frame) in frames.iter().skip(first).enumerate() {
        hash = tree::path_hash(hash, index, frame.pc as u64, modules::salt());
        let Some(node) = tree::find(hash).or_else(|| tree::add(cut, frame.pc as u64, hash)) else {
            return tree::ROOT;
        };
        cut = node;
    }
    if let Some(memo) = kept.cut_memo.get_mut(place) {
        *memo = (node, cut);
    }
    cut
}

/// Finds the node by a recent stack's suffix, or unwinds. A stack must be cached, and its words
/// readable; the present stack is readable up to `high`.
#[inline(never)]
fn capture_by_suffix<const IS_SPECIAL: bool>(
    handle: ScopeHandle,
    pc: usize,
    sp: usize,
    bp: usize,
    high: usize,
) -> u32 {
    let start = Start { pc, sp, bp };
    let mut scope = handle.scope();
    let kept = &mut scope.level().kept;
    let tag = suffix_cache::tag(kept, start, high);
    match suffix_cache::take(kept, tag, start, high) {
        Recent::Suffix(suffix) if !IS_SPECIAL => suffix.node,
        Recent::Suffix(suffix) => {
            let suffix: *const StackSuffix = suffix;
            // SAFETY: a suffix in this level's table, where it stays until another replaces it.
            let node = suffix_cache::take_specially(&mut scope, start, unsafe { &*suffix });
            node.unwrap_or_else(|| unwind_again(handle, pc, sp, bp))
        }
        Recent::ComesAgain => unwind_again(handle, pc, sp, bp),
        Recent::Unknown => unwind_onto_kept(handle, pc, sp, bp, true),
    }
}

/// Unwinds a stack whose suffix is known, so that the whole stack is cached.
#[cold]
#[inline(never)]
fn unwind_again(handle: ScopeHandle, pc: usize, sp: usize, bp: usize) -> u32 {
    unwind_onto_kept(handle, pc, sp, bp, false)
}

/// Unwinds out to the cached stack. `is_new`: the suffix is not known, and is to be remembered.
#[inline(never)]
fn unwind_onto_kept(handle: ScopeHandle, pc: usize, sp: usize, bp: usize, is_new: bool) -> u32 {
    let start = Start { pc, sp, bp };
    let mut scope = handle.scope();
    let range = range_of(&mut scope, sp);
    let new = is_new.then(|| suffix_cache::tag(&mut scope.level().kept, start, range.high));
    match plain_frames::unwind(&mut scope, start, range, new) {
        Some(node) => node,
        None => any_frames::unwind(&mut scope, start, range, new),
    }
}

/// Makes the cached frames those of the stack that begins at `start` and has `node`, which may have
/// been found by its suffix only.
#[cold]
#[inline(never)]
pub(crate) fn settle(scope: &mut Scope, start: Start, node: u32) {
    let kept = &scope.level().kept;
    if kept.is_of(start, node) {
        return;
    }
    let Start { pc, sp, bp } = start;
    let is_provable = kept.depth != 0 && kept.proof_epoch == AGENT.code_epoch.load(Relaxed);
    let range = range_of(scope, sp);
    let own = scope.state().ranges.own();
    let handle = scope.handle();
    if is_provable && is_within(&scope.level().kept, range, own) {
        unwind_again(handle, pc, sp, bp);
    } else {
        capture_anew(handle, pc, sp, bp);
    }
}

/// Unwinds to the end: no cached frame proves anything.
#[cold]
#[inline(never)]
fn capture_anew(handle: ScopeHandle, pc: usize, sp: usize, bp: usize) -> u32 {
    let start = Start { pc, sp, bp };
    let mut scope = handle.scope();
    let epoch = AGENT.code_epoch.load(Relaxed);
    let kept = &mut scope.level().kept;
    if kept.capacity == 0 && !kept.grow(0, 0) {
        AGENT.count(|slot| &slot.stacks_lost);
        return tree::ROOT;
    }
    kept.forget();
    kept.is_unprovable = false;
    kept.first_salt = modules::salt();
    if kept.code_epoch != epoch {
        kept.code_epoch = epoch;
        // SAFETY: null, or a table of this level alone, which is never unmapped.
        if let Some(shortcuts) = unsafe { kept.shortcuts.as_mut() } {
            shortcuts.rules.forget();
            shortcuts.suffixes.forget();
        }
    }
    let range = range_of(&mut scope, sp);
    any_frames::unwind(&mut scope, start, range, None)
}

/// Returns the rule for a frame that returns to `pc`, if it is known. The cached stack's epoch must
/// be the present one.
#[inline(always)]
pub(crate) fn cached_rule(kept: &CachedStack, pc: usize) -> Option<Rule> {
    cached_rule_of(kept.shortcuts, pc)
}

/// Returns the rule by a level's shortcuts; see [`cached_rule`].
#[inline(always)]
pub(crate) fn cached_rule_of(shortcuts: *mut Shortcuts, pc: usize) -> Option<Rule> {
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    match unsafe { shortcuts.as_mut() } {
        Some(shortcuts) => shortcuts.rules.cached(pc as u64),
        None => rules::cached(pc as u64),
    }
}
