//! Capturing the caller's stack, at the cost of what changed since the thread's last one.
//!
//! Unwinding a frame is a pure function of its state (pc, sp, bp) and of the stack words that its rule reads. The last
//! stack is kept with the state of each frame and the (address, value) of each word read:
//!
//! ```text
//! frames   outermost                                   innermost
//!          [0: start_thread] [1: main] [2: f] [3: g]
//! words    |w0 w1|           |w2|      |w3 w4||w5|        (frame i's words end at frames[i].words_end)
//! ```
//!
//! A new stack is unwound from the top until its state equals that of a kept frame; then the words from that frame
//! outwards are read again and compared. All equal: the rest is proven to be what a full unwind would give, and its node
//! is known. A difference at frame j: everything above j stands, and unwinding goes on from j.
//!
//! **The frame pointer** is part of a state only where a rule reads it before one further out restores it (`needs_bp`). In code
//! compiled without frame pointers it is a register like any other, with another value each time: there it is neither
//! compared nor are the words kept that it was saved in. Whether it is needed depends on the frames further out. So when those
//! change, unwinding goes on from a frame whose own rule settles it:
//!
//! ```text
//! rule            needs_bp                      settles_bp
//! reads bp        yes                           yes
//! restores bp     no                            yes
//! neither         as the caller's               no
//! ```
//!
//! (Python: 14.6 million frames unwound before, 0.2 million with this; redis 10.1 and 3.9, the rest of them by longer ways, see
//! [`crate::way`].)

use core::sync::atomic::Ordering::Relaxed;

use heapr_ring::Pool;
use heapr_wire::FLAG_STACK_SPECIAL;

use crate::bounds::StackRange;
use crate::events::{self, Records};
use crate::kept_stack::{CUT_MEMO, Frame, Kept, Start, WORDS_PER_FRAME, Word, is_within, read};
use crate::process::AGENT;
use crate::recent_way::Recent;
use crate::shortcut::Shortcuts;
use crate::thread::{Lent, Scope};
use crate::way::Way;
use crate::way_table::Tag;
use crate::x86_64::{Rule, Step};
use crate::{modules, path_node, plain_frames, recent_way, repair, rules, tree, verify};

/// Frames unwound anew in one capture before it is cut. Deeper stacks are cut at the outer end.
const FRESH_FRAMES_MAX: usize = 1 << 17;

/// The node of the stack that begins at `start`.
#[inline(never)]
pub(crate) fn capture(scope: &mut Scope, start: Start) -> u32 {
    if is_special() { capture_as::<true>(scope, start) } else { capture_as::<false>(scope, start) }
}

/// The same, if it is seen that [`is_special`] says no.
#[inline(always)]
pub(crate) fn capture_plainly(scope: &mut Scope, start: Start) -> u32 {
    capture_as::<false>(scope, start)
}

#[inline(always)]
fn capture_as<const IS_SPECIAL: bool>(scope: &mut Scope, start: Start) -> u32 {
    let is_main = scope.state().is_main;
    let range = scope.state().ranges.find(start.sp, is_main);
    let kept = &mut scope.level().kept;
    kept.capture_count = kept.capture_count.wrapping_add(1);
    if kept.proof_epoch != AGENT.code_epoch.load(Relaxed) || !is_within(kept, range) {
        return capture_anew(scope.lend(), start.pc, start.sp, start.bp);
    }
    // SAFETY: a stack is kept, of as many frames as the depth says, and that is at most the capacity.
    let top = unsafe { *kept.frame(kept.depth.wrapping_sub(1)) };
    if top.is_at(start) {
        // SAFETY: the words lie on the current stack, outwards of its stack pointer.
        let change = unsafe { kept.first_change(top.words_end as usize) };
        // SAFETY: a stack is kept, and `change` is one of its words.
        let node = if change == 0 {
            Some(kept.node)
        } else {
            unsafe { repair::repair(scope.lend(), range, change) }
        };
        if let Some(node) = node {
            scope.level().kept.last_way = core::ptr::null();
            return if IS_SPECIAL { finish(scope, node, start) } else { node };
        }
    }
    capture_by_way::<IS_SPECIAL>(scope.lend(), start.pc, start.sp, start.bp, range.high)
}

/// The node to give for the kept stack.
#[inline(always)]
pub(crate) fn finish(scope: &mut Scope, node: u32, start: Start) -> u32 {
    if !is_special() {
        return node;
    }
    let kept = &scope.level().kept;
    // SAFETY: `depth` frames are kept, and are not changed until `finish_specially` has returned.
    let frames = unsafe { core::slice::from_raw_parts(kept.frames, kept.depth) };
    // While the stack was captured modules may have been found that are hashed in another way.
    let is_present = kept.code_epoch == AGENT.code_epoch.load(Relaxed);
    let path_hash = is_present.then_some(kept.path_hash);
    finish_specially(scope, node, start, frames, path_hash)
}

/// Whether more is to be done with a stack than to find its node.
#[inline(always)]
pub(crate) fn is_special() -> bool {
    AGENT.pool().is_some_and(|pool| pool.control().flags.load(Relaxed) & FLAG_STACK_SPECIAL != 0)
}

/// Compares `frames` with a full unwind (and with the hash by which their node was found, where it is kept), or cuts them, as the session says.
#[cold]
#[inline(never)]
pub(crate) fn finish_specially(
    scope: &mut Scope,
    node: u32,
    start: Start,
    frames: &[Frame],
    path_hash: Option<u64>,
) -> u32 {
    let (is_main, ranges) = (scope.state().is_main, scope.state().ranges);
    let Some(control) = AGENT.pool().map(Pool::control) else { return node };
    let verify_every = control.verify_every.load(Relaxed);
    let max_frames = control.max_frames.load(Relaxed) as usize;
    let kept = &mut scope.level().kept;
    if verify_every != 0 && kept.capture_count.is_multiple_of(verify_every) && !frames.is_empty() {
        verify::compare(frames, path_hash, start, is_main, ranges);
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

/// How unwinding went on from a frame.
enum Outcome {
    Caller { pc: usize, sp: usize, bp: usize },
    Root,
    Cut,
}

/// Takes a recent stack's way, or unwinds. A stack is kept, and its words may be read; the present one is readable up to `high`.
#[inline(never)]
fn capture_by_way<const IS_SPECIAL: bool>(lent: Lent, pc: usize, sp: usize, bp: usize, high: usize) -> u32 {
    let start = Start { pc, sp, bp };
    let mut scope = lent.scope();
    let kept = &mut scope.level().kept;
    let tag = recent_way::tag(kept, start, high);
    match recent_way::take(kept, tag, start, high) {
        Recent::Way(way) if !IS_SPECIAL => way.node,
        Recent::Way(way) => {
            let way: *const Way = way;
            // SAFETY: a way of this level's, which keeps it until one is kept in its place.
            let node = recent_way::take_specially(&mut scope, start, unsafe { &*way });
            node.unwrap_or_else(|| unwind_again(lent, pc, sp, bp))
        }
        Recent::ComesAgain => unwind_again(lent, pc, sp, bp),
        Recent::Unknown => unwind_onto_kept(lent, pc, sp, bp, true),
    }
}

/// Unwinds a stack whose way is known, so that it is kept.
#[cold]
#[inline(never)]
fn unwind_again(lent: Lent, pc: usize, sp: usize, bp: usize) -> u32 {
    unwind_onto_kept(lent, pc, sp, bp, false)
}

/// Unwinds down to the kept stack. `is_new`: the way is not known, and to be kept.
#[inline(never)]
fn unwind_onto_kept(lent: Lent, pc: usize, sp: usize, bp: usize, is_new: bool) -> u32 {
    let start = Start { pc, sp, bp };
    let mut scope = lent.scope();
    let is_main = scope.state().is_main;
    let range = scope.state().ranges.find(sp, is_main);
    let new = is_new.then(|| recent_way::tag(&mut scope.level().kept, start, range.high));
    match plain_frames::unwind(&mut scope, start, range, new) {
        Some(node) => node,
        None => unwind(&mut scope, start, range, new),
    }
}

/// Unwinds to the end: nothing is kept that proves anything.
#[cold]
#[inline(never)]
fn capture_anew(lent: Lent, pc: usize, sp: usize, bp: usize) -> u32 {
    let start = Start { pc, sp, bp };
    let mut scope = lent.scope();
    let epoch = AGENT.code_epoch.load(Relaxed);
    let kept = &mut scope.level().kept;
    if kept.capacity == 0 && !kept.grow(0, 0) {
        AGENT.count(|slot| &slot.stacks_lost);
        return tree::ROOT;
    }
    kept.forget();
    kept.is_unprovable = false;
    if kept.code_epoch != epoch {
        kept.code_epoch = epoch;
        // SAFETY: null, or a table of this level alone, which is never unmapped.
        if let Some(shortcuts) = unsafe { kept.shortcuts.as_mut() } {
            shortcuts.rules.forget();
            shortcuts.ways.forget();
        }
    }
    let is_main = scope.state().is_main;
    let range = scope.state().ranges.find(sp, is_main);
    unwind(&mut scope, start, range, None)
}

/// Unwinds until the kept stack is met again, or to the end. `new`: its way is not known, and to be kept.
#[inline(never)]
fn unwind(scope: &mut Scope, start: Start, first_range: StackRange, new: Option<Tag>) -> u32 {
    let mut range = first_range;
    // Frames kept so far that may still be met: `base` of them.
    let mut base = scope.level().kept.depth;
    let mut fresh = 0_usize;
    let mut fresh_words = 0_usize;
    let mut unwound = 0_u64;
    let mut is_cut = false;
    let mut state = start;
    let mut is_signal_caller = false;
    let mut has_signal = false;
    loop {
        let kept = &mut scope.level().kept;
        // SAFETY: base is at most depth.
        while base > 0 && unsafe { kept.frame(base - 1).sp } < state.sp {
            base -= 1;
        }
        if base > 0 {
            // SAFETY: as above.
            let met = unsafe { *kept.frame(base - 1) };
            if met.is_at(state) {
                // SAFETY: the frame met lies on the stack that is being unwound, and its words outwards of it.
                let change = unsafe { kept.first_change(met.words_end as usize) };
                if change == 0 {
                    break;
                }
                let mut changed = base - 1;
                // SAFETY: as above.
                while changed > 0 && unsafe { kept.frame(changed - 1).words_end } as usize >= change {
                    changed -= 1;
                }
                // The frame pointer of a frame that did not need it is not proven, and other frames further out may need it.
                let mut again_at = changed;
                // SAFETY: as above.
                while again_at < base && !unsafe { kept.frame(again_at).settles_bp } {
                    again_at += 1;
                }
                for index in (again_at + 1..base).rev() {
                    if !take_over(kept, index, &mut fresh, &mut fresh_words) {
                        is_cut = true;
                        break;
                    }
                }
                if again_at < base {
                    // SAFETY: as above.
                    let again = unsafe { *kept.frame(again_at) };
                    state = again.state();
                    is_signal_caller = again.is_exact;
                }
                base = changed;
                if !range.contains(state.sp) {
                    // The change lies on the stack that a signal interrupted.
                    let is_main = scope.state().is_main;
                    range = scope.state().ranges.find(state.sp, is_main);
                }
            }
        }
        let kept = &mut scope.level().kept;
        if is_cut || fresh >= FRESH_FRAMES_MAX {
            is_cut = true;
            base = 0;
            break;
        }
        if kept.capacity <= fresh && !kept.grow(fresh, fresh_words) {
            is_cut = true;
            base = 0;
            break;
        }
        let words_before = fresh_words;
        let rule = match cached_rule(kept, state.pc) {
            Some(rule) => rule,
            None => {
                if let Some(slot) = slot(scope) {
                    events::add(&slot.rule_miss_count, 1);
                }
                rules::look_up(state.pc as u64, &mut Records { scope })
            }
        };
        let outcome = step(scope, rule, state, range, is_signal_caller, &mut fresh_words);
        let kept = &mut scope.level().kept;
        // SAFETY: fresh is below the capacity, checked above.
        unsafe {
            *kept.fresh.add(fresh) = Frame {
                pc: state.pc,
                sp: state.sp,
                bp: state.bp,
                hash: 0,
                words_end: fresh_words.wrapping_sub(words_before) as u32,
                is_exact: is_signal_caller,
                needs_bp: rule.uses_bp(),
                settles_bp: rule.uses_bp() || rule.restores_bp(),
                has_bp_word: rule.restores_bp() && matches!(outcome, Outcome::Caller { .. }),
            };
        }
        fresh += 1;
        unwound = unwound.wrapping_add(1);
        is_signal_caller = rule.is_signal_frame();
        has_signal |= is_signal_caller;
        match outcome {
            Outcome::Caller { pc, sp, bp } => {
                if !range.contains(sp) {
                    let is_main = scope.state().is_main;
                    range = scope.state().ranges.find(sp, is_main);
                }
                state = Start { pc, sp, bp };
            }
            Outcome::Root => {
                base = 0;
                break;
            }
            Outcome::Cut => {
                is_cut = true;
                base = 0;
                break;
            }
        }
    }
    let node = enter_fresh(scope, base, fresh, fresh_words);
    if !is_cut
        && !has_signal
        && let Some(tag) = new
    {
        recent_way::keep(scope, tag, start, base, fresh);
    }
    if let Some(slot) = slot(scope) {
        events::add(&slot.stack_count, 1);
        events::add(&slot.frames_unwound, unwound);
        if is_cut {
            events::add(&slot.stacks_truncated, 1);
        }
    }
    finish(scope, node, start)
}

/// The rule for a frame that returns to `pc`, if it is known. The kept stack's epoch is the present one.
#[inline(always)]
pub(crate) fn cached_rule(kept: &Kept, pc: usize) -> Option<Rule> {
    cached_rule_of(kept.shortcuts, pc)
}

/// The same, by what the level remembers.
#[inline(always)]
pub(crate) fn cached_rule_of(shortcuts: *mut Shortcuts, pc: usize) -> Option<Rule> {
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    match unsafe { shortcuts.as_mut() } {
        Some(shortcuts) => shortcuts.rules.cached(pc as u64),
        None => rules::cached(pc as u64),
    }
}

/// The counters of this level, if it has a slot yet.
fn slot(scope: &mut Scope) -> Option<&'static heapr_wire::ThreadSlot> {
    // SAFETY: null, or a slot of the pool, which is never unmapped.
    unsafe { scope.level().slot.as_ref() }
}

/// Moves a kept frame that still stands to the fresh ones, because one further out has changed.
fn take_over(kept: &mut Kept, index: usize, fresh: &mut usize, fresh_words: &mut usize) -> bool {
    if *fresh >= kept.capacity && !kept.grow(*fresh, *fresh_words) {
        return false;
    }
    // SAFETY: index is below the depth; the fresh arrays have room for capacity frames with their words.
    unsafe {
        let frame = *kept.frame(index);
        let start = if index == 0 { 0 } else { kept.frame(index - 1).words_end };
        let count = frame.words_end.wrapping_sub(start) as usize;
        // One to three words: a loop is faster than a call of memcpy.
        for offset in 0..count {
            *kept.fresh_words.add(*fresh_words + offset) = *kept.words.add(start as usize + offset);
        }
        *kept.fresh.add(*fresh) = Frame { words_end: count as u32, ..frame };
        *fresh_words += count;
    }
    *fresh += 1;
    true
}

/// Unwinds one frame.
#[inline(always)]
fn step(
    scope: &mut Scope,
    rule: Rule,
    state: Start,
    range: StackRange,
    is_exact: bool,
    fresh_words: &mut usize,
) -> Outcome {
    let words = scope.level().kept.fresh_words;
    let mut count = *fresh_words;
    let limit = count.wrapping_add(WORDS_PER_FRAME);
    let stepped = rule.step(state.pc, state.sp, state.bp, is_exact, |address| {
        if !range.may_read(address, state.sp, is_exact) || count >= limit {
            return None;
        }
        // SAFETY: inside the mapped stack, checked above; the word arrays have room for three words a frame.
        unsafe {
            let value = read(address);
            *words.add(count) = Word { address, value };
            count = count.wrapping_add(1);
            Some(value)
        }
    });
    *fresh_words = count;
    match stepped {
        Step::Caller { pc, sp, bp } if sp > state.sp || rule.is_signal_frame() => {
            Outcome::Caller { pc, sp, bp }
        }
        Step::Root => Outcome::Root,
        Step::Slow => slowly(scope, state),
        Step::Caller { .. } | Step::Unreadable => Outcome::Cut,
    }
}

/// Unwinds one frame whose rule needs more than its state.
#[cold]
#[inline(never)]
fn slowly(scope: &mut Scope, state: Start) -> Outcome {
    scope.level().kept.is_unprovable = true;
    // (264 bytes: copied for every frame they took a hundredth of clang's time.)
    let (is_main, ranges) = (scope.state().is_main, scope.state().ranges);
    match verify::slow_step(state.pc, state.sp, is_main, ranges) {
        Some((pc, sp, bp, _)) if sp > state.sp => Outcome::Caller { pc, sp, bp },
        _ => Outcome::Cut,
    }
}

/// Appends the fresh frames, which lie innermost first, to the `base` kept ones, and numbers their nodes.
fn enter_fresh(scope: &mut Scope, base: usize, fresh: usize, fresh_words: usize) -> u32 {
    let kept = &mut scope.level().kept;
    while kept.capacity < base.wrapping_add(fresh) {
        if !kept.grow(fresh, fresh_words) {
            kept.forget();
            AGENT.count(|slot| &slot.stacks_lost);
            return tree::ROOT;
        }
    }
    // SAFETY: base + fresh frames, each with at most WORDS_PER_FRAME words, fit the capacity.
    unsafe {
        path_node::hash_fresh(kept, base, fresh);
        let (mut words_end, mut needs_bp) = match base.checked_sub(1) {
            Some(top) => {
                let top = kept.frame(top);
                (top.words_end, top.needs_bp)
            }
            None => (0, false),
        };
        let mut source_end = fresh_words;
        for number in 0..fresh {
            let frame = *kept.fresh.add(fresh - 1 - number);
            source_end = source_end.wrapping_sub(frame.words_end as usize);
            // A frame pointer that nobody needs further out may change without changing the stack.
            let has_bp_word = frame.has_bp_word && needs_bp;
            let count = (frame.words_end as usize).wrapping_sub(usize::from(frame.has_bp_word && !needs_bp));
            // One to three words: a loop is faster than a call of memcpy.
            for offset in 0..count {
                *kept.words.add(words_end as usize + offset) = *kept.fresh_words.add(source_end + offset);
            }
            words_end = words_end.wrapping_add(count as u32);
            needs_bp = if frame.settles_bp { frame.needs_bp } else { needs_bp };
            *kept.frame(base.wrapping_add(number)) = Frame { words_end, needs_bp, has_bp_word, ..frame };
        }
        kept.depth = base.wrapping_add(fresh);
        kept.hashed = kept.depth;
    }
    path_node::enter(kept, base);
    kept.node
}
