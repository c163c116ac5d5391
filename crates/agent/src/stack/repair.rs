//! Repairs the cached stack in place, which must give what unwinding anew gives; heapr's test
//! `victims` checks that.
//!
//! A loop may call one function or another, and end in the same allocation. That changes some
//! frames in the middle of the stack and leaves its shape as it is. Each frame lies at the address
//! of the one before, and reads as many words.
//!
//! ```text
//! cached [main] [loop: a] [f] [g] [leaf]        words   |..|..|..|..|..|
//! now    [main] [loop: b] [h] [g] [leaf]                    ^^ ^^
//! ```
//! The repair begins at the innermost word that has changed.
//!
//! The frames inwards of the change are valid. From there outwards each frame is unwound, and
//! replaces the cached one, until a cached frame is met whose words have not changed. No frame is
//! moved, and the valid frames further in keep their part of the hash. If the shape differs in any
//! respect, the cached stack is unchanged, and [`crate::stack`] takes the general path. (In the
//! test program with frames that change on thirty levels, nine of ten new stacks are repaired.)
//!
//! **The frame pointer** may be unproven in a frame that does not need it. A repaired frame must
//! have the same flags as the one before (`needs_bp`, `settles_bp`, `has_bp_word`). Then all frames
//! further in keep correct flags, and no frame is unwound by a frame pointer that is not proven.

use core::mem::MaybeUninit;

use crate::arch::{Rule, Step};
use crate::frames::cached_stack::CachedStack;
use crate::frames::frame::{Frame, Start, Word, read};
use crate::frames::path_node;
use crate::frames::repairs::{Repairs, WORDS_MAX};
use crate::frames::stack_range::StackRange;
use crate::modules;
use crate::record::thread::ScopeHandle;
use crate::record::writing;
use crate::stack;
use crate::tree;

/// Returns the node of the stack whose innermost frame is that of the cached stack; its innermost
/// changed word is the one before number `change`. Returns `None`, without any change, if the stack
/// has another shape.
///
/// # Safety
/// 1. A stack is cached, and its words lie in `range` or outwards of it, where the thread's stack
///    continues.
/// 2. `change` is at least 1 and not above the number of its words.
#[inline(never)]
pub(crate) unsafe fn repair(handle: ScopeHandle, range: StackRange, change: usize) -> Option<u32> {
    let mut scope = handle.scope();
    let is_outermost_level = scope.depth() == 0;
    let level = scope.level();
    let (kept, work) = (&mut level.kept, &mut level.repairs);
    work.count = 0;
    // SAFETY: (1), (2).
    unsafe { unwind_in_place(kept, range, change, work) }?;
    if is_outermost_level {
        // Not for the suffixes, but for the nodes in the shortcuts.
        let _ = kept.has_shortcuts();
    }
    // SAFETY: frames of the cached stack, and their own words.
    unsafe { commit(kept, work) };
    // SAFETY: null, or a slot of the pool, which is never unmapped.
    if let Some(slot) = unsafe { level.slot.as_ref() } {
        writing::add(&slot.stack_count, 1);
        writing::add(&slot.frames_unwound, work.count as u64);
    }
    Some(level.kept.node)
}

/// Unwinds from the innermost change on, out to the outermost frame that differs from before.
#[inline(always)]
unsafe fn unwind_in_place(
    kept: &CachedStack,
    range: StackRange,
    change: usize,
    work: &mut Repairs,
) -> Option<()> {
    // SAFETY: (2) of `repair`.
    let mut index = unsafe { frame_of_word(kept, kept.depth, change) };
    // SAFETY: `index` is always below the depth.
    let mut frame = unsafe { *kept.frame(index) };
    let (mut pc, mut bp) = (frame.pc, frame.bp);
    let mut is_bp_known = frame.needs_bp;
    loop {
        let outer_index = index.checked_sub(1)?;
        // SAFETY: below the depth.
        let outer = unsafe { *kept.frame(outer_index) };
        let rule = stack::cached_rule(kept, pc)?;
        let has_bp_word = rule.restores_bp() && outer.needs_bp;
        let says_the_same = frame.settles_bp == (rule.uses_bp() || rule.restores_bp())
            && (!frame.settles_bp || frame.needs_bp == rule.uses_bp())
            && frame.has_bp_word == has_bp_word
            && !frame.is_exact
            && !rule.is_signal_frame();
        if !says_the_same || (rule.uses_bp() && !is_bp_known) {
            return None;
        }
        let first_word = outer.words_end as usize;
        let kept_count = (frame.words_end as usize).wrapping_sub(first_word);
        let room = work.room()?;
        // SAFETY: the room for a frame; its words may be uninitialised until they are counted.
        let words = unsafe { &mut (*room).words };
        let (caller, read_count) = step(rule, Frame { pc, bp, ..frame }, range, words)?;
        // The last word is the frame pointer, which is not cached if no frame needs it.
        let count = read_count.wrapping_sub(usize::from(rule.restores_bp() && !has_bp_word));
        is_bp_known |= rule.restores_bp();
        if count != kept_count || outer.sp != caller.sp || (outer.needs_bp && !is_bp_known) {
            return None;
        }
        // SAFETY: as above; together with the words every field is written.
        unsafe {
            (&raw mut (*room).index).write(index);
            (&raw mut (*room).pc).write(pc);
            (&raw mut (*room).bp).write(bp);
            (&raw mut (*room).first_word).write(first_word);
            (&raw mut (*room).count).write(count);
        }
        work.count = work.count.wrapping_add(1);
        if outer.is_at(caller) {
            // SAFETY: as for the first change: the frame met lies on the stack that is being
            // unwound.
            let change = unsafe { kept.first_change(first_word) };
            if change == 0 {
                return Some(());
            }
            // SAFETY: as above; a word of one of the frames below `index`.
            unsafe {
                index = frame_of_word(kept, index, change);
                frame = *kept.frame(index);
            }
            (pc, bp) = (frame.pc, frame.bp);
            is_bp_known = frame.needs_bp;
        } else {
            index = outer_index;
            frame = outer;
            (pc, bp) = (caller.pc, caller.bp);
        }
    }
}

/// Returns the index of the frame, among the outer `depth`, that has read word number `end` - 1.
#[inline(always)]
unsafe fn frame_of_word(kept: &CachedStack, depth: usize, end: usize) -> usize {
    let mut index = depth.wrapping_sub(1);
    // SAFETY: `index` stays below the depth.
    while index > 0 && unsafe { kept.frame(index - 1).words_end } as usize >= end {
        index = index.wrapping_sub(1);
    }
    index
}

/// Unwinds one frame; returns its caller, and the number of words read.
#[inline(always)]
fn step(
    rule: Rule,
    frame: Frame,
    range: StackRange,
    words: &mut [MaybeUninit<Word>; WORDS_MAX],
) -> Option<(Start, usize)> {
    let mut count = 0_usize;
    let stepped = rule.step(frame.pc, frame.sp, frame.bp, false, |address| {
        let word = words.get_mut(count)?;
        if !range.may_read(address, frame.sp, false) {
            return None;
        }
        // SAFETY: inside the mapped stack, checked above.
        let value = unsafe { read(address) };
        word.write(Word { address, value });
        count = count.wrapping_add(1);
        Some(value)
    });
    match stepped {
        Step::Caller { pc, sp, bp } if sp > frame.sp => Some((Start { pc, sp, bp }, count)),
        _ => None,
    }
}

/// Writes the frames into the cached stack, and finds its node.
#[inline(always)]
unsafe fn commit(kept: &mut CachedStack, work: &Repairs) {
    let salt = modules::salt();
    let mut hash = kept.path_hash;
    for repaired in work.all() {
        // SAFETY: the index of a cached frame.
        let frame = unsafe { kept.frame(repaired.index) };
        let part = |pc: usize| tree::part_hash(repaired.index, pc as u64, salt);
        hash = hash.wrapping_sub(part(frame.pc)).wrapping_add(part(repaired.pc));
        frame.pc = repaired.pc;
        frame.bp = repaired.bp;
        kept.hashed = kept.hashed.min(repaired.index);
    }
    kept.path_hash = hash;
    // The words are written while the tables' entries are loaded.
    path_node::prefetch(kept, hash);
    tree::prefetch_node(hash);
    for repaired in work.all() {
        for (offset, word) in repaired.words.iter().enumerate().take(repaired.count) {
            // SAFETY: as many words as the frame has read, and had before, from the same first one
            // on.
            unsafe { *kept.words.add(repaired.first_word.wrapping_add(offset)) = word.assume_init() };
        }
    }
    let shared = work.all().last().map_or(0, |outermost| outermost.index);
    path_node::enter(kept, shared);
}
