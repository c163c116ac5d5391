//! General path of unwinding, for frames of any kind, until the cached stack is met: used if
//! [`crate::stack::plain_frames`] returns `None`.
//!
//! ```text
//! cached  [main] [loop] [base] [f] [g]        `base` of its frames may still be met
//! fresh   [top] [z] [y] ...                   innermost first, with the words of their rules
//! now     [main] [loop] [base] .. [y] [z] [top]
//! ```
//!
//! A frame that is met is valid only if the words outwards of it are unchanged. If one has changed,
//! the frames inwards of the change are valid and are taken over, and unwinding continues from
//! there: see [`crate::stack`].
//!
//! **Several stacks.** A signal handler may have its own stack. Code may also continue on another
//! stack and say so in its unwind tables (Rust's `stacker`, split stacks, fibers). Words of another
//! stack may be compared later only if that stack is still mapped then:
//!
//! ```text
//! stacks, from the innermost frame outwards     cached as proof
//! any one                                       yes
//! another one, then the thread's own            yes
//! any other combination                         no: the next stack is unwound in full
//! ```
//! See [`crate::frames::cached_stack::is_within`].

use crate::arch::{Rule, Step};
use crate::frames::cached_stack::{CachedStack, WORDS_PER_FRAME};
use crate::frames::frame::{Frame, Start, Word, read};
use crate::frames::path_node;
use crate::frames::stack_range::StackRange;
use crate::frames::suffix_table::Tag;
use crate::modules::rules;
use crate::record::thread::Scope;
use crate::record::writing::{self, Records};
use crate::stack::suffix_cache;
use crate::stack::verify::{self, FRESH_FRAMES_MAX};
use crate::stack::{cached_rule, finish};
use crate::state::{AGENT, own_stack};
use crate::tree;

/// Largest number of times that a stack continues on another one: each may be a question to the
/// kernel.
const CROSSINGS_MAX: usize = 256;

/// Result of unwinding one frame.
enum Outcome {
    Caller { pc: usize, sp: usize, bp: usize },
    Root,
    Cut,
}

/// Unwinds until the cached stack is met, or to the end. `new`: the tag of the stack's suffix if
/// that is not known, and is to be remembered.
///
/// Long: one loop over frames, whose dozen variables stay in registers; parts of it as functions
/// would take them through memory at each frame.
#[inline(never)]
pub(crate) fn unwind(scope: &mut Scope, start: Start, first_range: StackRange, new: Option<Tag>) -> u32 {
    let mut range = first_range;
    // Number of cached frames that may still be met.
    let mut base = scope.level().kept.depth;
    let mut fresh = 0_usize;
    let mut fresh_words = 0_usize;
    let mut unwound = 0_u64;
    let mut is_cut = false;
    let mut state = start;
    let mut is_signal_caller = false;
    let mut has_signal = false;
    let mut crossing_count = 0_usize;
    let own = scope.state().ranges.own();
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
                // SAFETY: the frame met lies on the stack that is being unwound, and its words
                // outwards of it.
                let change = unsafe { kept.first_change(met.words_end as usize) };
                if change == 0 {
                    break;
                }
                let mut changed = base - 1;
                // SAFETY: as above.
                while changed > 0 && unsafe { kept.frame(changed - 1).words_end } as usize >= change {
                    changed -= 1;
                }
                // The frame pointer of a frame that did not need it is not proven, and other frames
                // further out may need it.
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
                    // The change lies on the thread's own stack, on which the outer frames of a
                    // two-stack capture lie.
                    range = own;
                    crossing_count = 1;
                }
            }
        }
        let kept = &mut scope.level().kept;
        if is_cut || fresh >= FRESH_FRAMES_MAX || (kept.capacity <= fresh && !kept.grow(fresh, fresh_words)) {
            // The stack continues, but there is no room for it. The count tells users that outer
            // frames are missing.
            AGENT.count(|slot| &slot.stacks_lost);
            is_cut = true;
            base = 0;
            break;
        }
        let words_before = fresh_words;
        let rule = match cached_rule(kept, state.pc) {
            Some(rule) => rule,
            None => {
                if let Some(slot) = slot(scope) {
                    writing::add(&slot.rule_miss_count, 1);
                }
                let Some(rule) = rules::look_up(state.pc as u64, &mut Records { scope }) else {
                    // The address is data: wrong or missing unwind information led here.
                    is_cut = true;
                    base = 0;
                    break;
                };
                rule
            }
        };
        let mut across = StackRange::EMPTY;
        let outcome = step(scope, rule, state, (range, &mut across), is_signal_caller, &mut fresh_words);
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
                if !range.contains(sp) && sp != range.high {
                    crossing_count = crossing_count.wrapping_add(1);
                    if crossing_count > CROSSINGS_MAX {
                        is_cut = true;
                        base = 0;
                        break;
                    }
                    range = match across {
                        // The kernel has recorded where the code was interrupted.
                        _ if is_signal_caller && own.contains(sp) => own,
                        found if found.contains(sp) => found,
                        _ => scope.state().ranges.across(sp),
                    };
                    let kept = &mut scope.level().kept;
                    if crossing_count == 1 && first_range != own && own.contains(sp) {
                        // SAFETY: base is at most depth. Frames outwards of a frame on the thread's
                        // own stack lie on that stack, too.
                        while base > 0 && !own.contains(unsafe { kept.frame(base - 1).sp }) {
                            base -= 1;
                        }
                    } else {
                        kept.is_unprovable = true;
                        base = 0;
                    }
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
    let kept = &mut scope.level().kept;
    if crossing_count != 0 {
        kept.inner_high = first_range.high;
    } else if base == 0 || first_range == own {
        kept.inner_high = 0;
    }
    let node = enter_fresh(scope, base, fresh, fresh_words);
    if !is_cut
        && !has_signal
        && crossing_count == 0
        && let Some(tag) = new
    {
        suffix_cache::keep(scope, tag, start, base, fresh);
    }
    if let Some(slot) = slot(scope) {
        writing::add(&slot.stack_count, 1);
        writing::add(&slot.frames_unwound, unwound);
        if is_cut {
            writing::add(&slot.stacks_truncated, 1);
        }
    }
    finish(scope, node, start)
}

/// Returns the counters of this level, if it has a slot yet.
fn slot(scope: &mut Scope) -> Option<&'static heapr_wire::ThreadSlot> {
    // SAFETY: null, or a slot of the pool, which is never unmapped.
    unsafe { scope.level().slot.as_ref() }
}

/// Moves a valid cached frame to the fresh ones, because a frame further out has changed.
fn take_over(kept: &mut CachedStack, index: usize, fresh: &mut usize, fresh_words: &mut usize) -> bool {
    if *fresh >= kept.capacity && !kept.grow(*fresh, *fresh_words) {
        return false;
    }
    // SAFETY: index is below the depth; the fresh arrays have room for capacity frames with their
    // words.
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
    (range, across): (StackRange, &mut StackRange),
    is_exact: bool,
    fresh_words: &mut usize,
) -> Outcome {
    let words = scope.level().kept.fresh_words;
    let mut count = *fresh_words;
    let limit = count.wrapping_add(WORDS_PER_FRAME);
    let stepped = rule.step(state.pc, state.sp, state.bp, is_exact, |address| {
        if count >= limit {
            return None;
        }
        let may_read = range.may_read(address, state.sp, is_exact)
            || (rule.may_change_stacks() && is_across(scope, across, address));
        if !may_read {
            return None;
        }
        // SAFETY: inside the mapped stack, checked above; the word arrays have room for three words
        // a frame.
        unsafe {
            let value = read(address);
            *words.add(count) = Word { address, value };
            count = count.wrapping_add(1);
            Some(value)
        }
    });
    *fresh_words = count;
    match stepped {
        Step::Caller { pc, sp, bp }
            if sp > state.sp || rule.is_signal_frame() || *across != StackRange::EMPTY =>
        {
            Outcome::Caller { pc, sp, bp }
        }
        Step::Root => Outcome::Root,
        Step::Slow => slowly(scope, state, range),
        Step::Caller { .. } | Step::Unreadable => Outcome::Cut,
    }
}

/// True if a word lies on the stack of a frame's caller, which is determined at the first such
/// word.
#[cold]
#[inline(never)]
fn is_across(scope: &mut Scope, across: &mut StackRange, address: usize) -> bool {
    if *across == StackRange::EMPTY {
        *across = scope.state().ranges.across(address);
    }
    across.may_read(address, across.low, false)
}

/// Unwinds one frame whose rule needs more than its state.
#[cold]
#[inline(never)]
fn slowly(scope: &mut Scope, state: Start, range: StackRange) -> Outcome {
    scope.level().kept.is_unprovable = true;
    // (264 bytes: copying them for every frame took a hundredth of clang's time.)
    let (is_main, ranges) = (scope.state().is_main, scope.state().ranges);
    match own_stack::run(|| verify::slow_step(state.pc, state.sp, is_main, ranges)) {
        Some((pc, sp, bp, _)) if sp > state.sp || !range.contains(sp) => Outcome::Caller { pc, sp, bp },
        _ => Outcome::Cut,
    }
}

/// Appends the fresh frames, which are stored innermost first, to the `base` cached ones, and finds
/// their nodes.
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
            // A frame pointer that no frame further out needs may change without changing the
            // stack.
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
