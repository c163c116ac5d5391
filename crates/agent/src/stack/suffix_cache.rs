//! Finds a stack by a recent stack's suffix instead of unwinding, which must lead to the same node;
//! heapr's test `victims` checks that.
//!
//! A suffix leads to a frame of the cached stack. The suffix of an unwound stack is remembered: see
//! [`crate::frames::suffix`].
//!
//! ```text
//! cached   [main] [loop] [f] [g]
//! recent          [loop] [h] [k]
//! now      [main] [loop] [h] [k]
//! ```
//! Recent is the suffix that began at k: its words, the base that it leads to, its node. The
//! present stack is as recent if these words, and those from the base outwards, are unchanged.

use crate::arch::{RETURN_ADDRESS_BELOW, Rule};
use crate::frames::cached_stack::{CachedStack, INNERMOST};
use crate::frames::frame::{Frame, Innermost, Start, read};
use crate::frames::shortcut::Shortcuts;
use crate::frames::stack_range::StackRange;
use crate::frames::suffix::{StackSuffix, Unwound};
use crate::frames::suffix_table::{CachedFrames, Tag};
use crate::modules::rules;
use crate::record::thread::Scope;
use crate::stack::{self, finish_specially};
use crate::state::AGENT;

/// Result of a lookup among the recent stacks.
pub(crate) enum Recent<'a> {
    /// The stack's suffix, which has its node.
    Suffix(&'a StackSuffix),
    /// The last stacks had the same suffix: the whole stack is worth caching.
    ComesAgain,
    /// No recent stack has the same suffix.
    Unknown,
}

/// Number of successive captures that find the same suffix before the stack is unwound and cached.
/// (Doing so at once would be 57,000 times on clang, 2 to 3 % of the agent.)
const REPEATS: u32 = 4;
/// Number of successful lookups that make up for a failed one. (Of clang's every sixth lookup
/// fails, with return addresses every tenth. Of Python's one in hundreds fails, and there the
/// return address distinguishes no stacks and took 4 to 5 ns a stack.)
const MISS: u32 = 16;
/// Count of failed lookups at which the innermost frame's return address becomes part of the tag;
/// at count 0 that ends. It takes some thousand failures in a row. So the suffixes, which cannot be
/// found by the other kind of tag, are seldom given up.
const MISSES: u32 = 1 << 14;

/// Returns the key for the suffix of the stack that begins at `start`. If many lookups fail, the
/// key includes the innermost frame's return address, provided that frame is plain. The stack must
/// be readable up to `high`.
#[inline(always)]
pub(crate) fn tag(kept: &mut CachedStack, start: Start, high: usize) -> Tag {
    if kept.finds_by_return { tag_with_return(kept, start.pc, start.sp, high) } else { Tag::of(start, 0) }
}

#[inline(never)]
fn tag_with_return(kept: &mut CachedStack, pc: usize, sp: usize, high: usize) -> Tag {
    let start = Start { pc, sp, bp: 0 };
    let Some(innermost) = kept.innermost.get_mut(rules::hash(pc as u64) % INNERMOST) else {
        return Tag::of(start, 0);
    };
    if innermost.pc != pc {
        let rule = stack::cached_rule_of(kept.shortcuts, pc);
        *innermost = Innermost { pc, frame_bytes: rule.and_then(Rule::plain_frame_bytes).unwrap_or(0) };
    }
    let address = sp.wrapping_add(innermost.frame_bytes).wrapping_sub(RETURN_ADDRESS_BELOW);
    let range = StackRange { low: sp, high };
    // SAFETY: inside the mapped stack, checked before.
    let return_address = if range.may_read(address, sp, false) { unsafe { read(address) } } else { 0 };
    Tag::of(start, return_address)
}

/// Returns the recent suffix of the stack that begins at `start`, if its base is a frame of the
/// cached stack. The stack must be readable up to `high`.
///
/// The cached stack is not replaced while two or more stacks take turns: each is found without
/// moving a frame. A stack that repeats is cached in its place. (The agent's samples relative to
/// those of user code, with each stack cached and with this rule. Python: 0.328 and 0.283; jq:
/// 0.129 and 0.110; Node: 0.278 and 0.262.)
#[inline(always)]
pub(crate) fn take(kept: &mut CachedStack, tag: Tag, start: Start, high: usize) -> Recent<'_> {
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    let Some(Shortcuts { suffixes, .. }) = (unsafe { kept.shortcuts.as_ref() }) else {
        return Recent::Unknown;
    };
    kept.settle_hashes();
    let frames = CachedFrames { frames: kept.frames, depth: kept.depth };
    // SAFETY: the stack pointer lies below `high`. `depth` frames are cached at `kept.frames`, and
    // so were the bases of all suffixes. If there are shortcuts, there is a table of suffixes.
    let found = unsafe { suffixes.find(tag, start, high, frames) };
    let Some((suffix, base)) = found else {
        kept.suffix_misses = kept.suffix_misses.saturating_add(MISS).min(MISSES);
        kept.finds_by_return |= kept.suffix_misses == MISSES;
        return Recent::Unknown;
    };
    if kept.suffix_misses != 0 {
        kept.suffix_misses = kept.suffix_misses.wrapping_sub(1);
        kept.finds_by_return &= kept.suffix_misses != 0;
    }
    // SAFETY: the base was found among the cached frames, and lies on the current stack with its
    // words outwards of it.
    if unsafe { kept.is_any_changed(base.words_end as usize) } {
        return Recent::Unknown;
    }
    if comes_again(kept, suffix) { Recent::ComesAgain } else { Recent::Suffix(suffix) }
}

/// Returns the index, from the outer end, of the base frame of the stack that was just captured,
/// begins at `start` and has `node`. That frame and those outwards of it belong to the stack, and
/// have their hashes. Returns `None` if the cached stack is the whole stack, or the base is not
/// known.
#[inline(always)]
pub(crate) fn found_base(kept: &CachedStack, start: Start, node: u32) -> Option<usize> {
    if kept.is_of(start, node) {
        return None;
    }
    // SAFETY: null, or a suffix in this level's table, which has not moved since.
    let suffix = unsafe { kept.last_suffix.as_ref() }?;
    let is_found = suffix.node == node && suffix.begins_at(start) && suffix.is_among(kept.depth);
    is_found.then(|| suffix.base_index())
}

/// True if the suffix was found in so many successive captures that its stack is worth caching as a
/// whole.
#[inline(always)]
fn comes_again(kept: &mut CachedStack, suffix: &StackSuffix) -> bool {
    if core::ptr::eq(kept.last_suffix, suffix) {
        return kept.capture_count.wrapping_sub(kept.last_suffix_capture) >= REPEATS;
    }
    (kept.last_suffix, kept.last_suffix_capture) = (suffix, kept.capture_count);
    false
}

/// Returns the node of a stack with this suffix, after verifying or cutting its frames. Returns
/// `None` if there is no room for the frames.
#[cold]
#[inline(never)]
pub(crate) fn take_specially(scope: &mut Scope, start: Start, suffix: &StackSuffix) -> Option<u32> {
    let kept = &mut scope.level().kept;
    let mut depth = suffix.base_index().wrapping_add(1);
    // SAFETY: the base is among the cached frames, and there is room for `capacity` frames; no
    // frames are being unwound. They are not changed until `finish_specially` has returned.
    let frames = unsafe {
        let base = *kept.frame(suffix.base_index());
        core::ptr::copy_nonoverlapping(kept.frames, kept.fresh, depth);
        for pc in suffix.return_addresses() {
            if depth >= kept.capacity {
                return None;
            }
            // Only the addresses are used.
            *kept.fresh.add(depth) = Frame { pc, ..base };
            depth = depth.wrapping_add(1);
        }
        core::slice::from_raw_parts(kept.fresh, depth)
    };
    Some(finish_specially(scope, suffix.node, start, frames, None))
}

/// Remembers the suffix of `fresh` frames inwards of the `base` cached ones, if it is short.
#[inline(always)]
pub(crate) fn keep(scope: &mut Scope, tag: Tag, start: Start, base: usize, fresh: usize) {
    let is_outermost_level = scope.depth() == 0;
    let kept = &mut scope.level().kept;
    if base == 0
        || fresh == 0
        || kept.is_unprovable
        || kept.depth != base.wrapping_add(fresh)
        || !is_outermost_level
        || !kept.has_shortcuts()
    {
        return;
    }
    let Some(process) = AGENT.fork_local() else { return };
    // The table may be replaced by a larger one.
    kept.last_suffix = core::ptr::null();
    // SAFETY: a table of this level alone; `base + fresh` frames are cached with the words up to
    // the last one's end.
    unsafe {
        let unwound = Unwound {
            start,
            node: kept.node,
            base: *kept.frame(base - 1),
            base_index: base - 1,
            frames: core::slice::from_raw_parts(kept.frames.add(base), fresh),
            words: kept.words,
        };
        (*kept.shortcuts).suffixes.keep(tag, &unwound, &process.grown_suffixes_bytes);
    }
}
