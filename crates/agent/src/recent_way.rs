//! Taking a recent stack's way to a frame of the kept stack, and keeping the way that was unwound: see [`crate::way`].
//!
//! ```text
//! kept     [main] [loop] [f] [g]
//! recent          [loop] [h] [k]        the way of a stack that began at k: its words, the base that it leads to, its node
//! now      [main] [loop] [h] [k]        as recent: the way's words and those from the base outwards are as they were
//! ```

use crate::bounds::StackRange;
use crate::kept_stack::{Frame, INNERMOST, Innermost, Kept, Start, read};
use crate::process::AGENT;
use crate::rules;
use crate::shortcut::Shortcuts;
use crate::stack::{self, finish_specially, is_special};
use crate::thread::Scope;
use crate::way::{Unwound, Way};
use crate::way_table::{KeptFrames, Tag};
use crate::word_pairs::WordPairs;
use crate::x86_64::Rule;

/// What is known of a stack by the recent ones.
pub(crate) enum Recent {
    /// Its node.
    Node(u32),
    /// Its way was the last ones', too: it is worth to be kept as a whole.
    ComesAgain,
    /// Nothing.
    Unknown,
}

/// A stack whose way was taken so often in a row is unwound the next time, and kept. (At once: 57,000 times on clang, 2 to 3 % of the agent.)
const REPEATS: u32 = 4;
/// A way that is not found counts for so many that are. (Of clang's every sixth is not found, with return addresses every tenth; of Python's one in
/// hundreds, and there the return address distinguishes nothing and took 4 to 5 ns a stack.)
const MISS: u32 = 16;
/// At this count ways begin to be found by where the innermost frame returns to, too, and at 0 they end to be: some thousand in a row, so that
/// the ways, which are not found by the other kind of tag, are seldom given up.
const MISSES: u32 = 1 << 14;

/// So often a kept stack's words are compared as they were read before they are laid out in pairs, which takes about as long as this.
const COMPARED: u32 = 16;

/// What the way of the stack that begins at `start` is found by: where many are not found, with it where the innermost frame returns to, if that is
/// a plain one.
#[inline(always)]
pub(crate) fn tag(kept: &mut Kept, start: Start, range: StackRange) -> Tag {
    if kept.finds_by_return { tag_with_return(kept, start, range) } else { Tag::of(start, 0) }
}

#[inline(never)]
fn tag_with_return(kept: &mut Kept, start: Start, range: StackRange) -> Tag {
    let Some(innermost) = kept.innermost.get_mut(rules::hash(start.pc as u64) % INNERMOST) else {
        return Tag::of(start, 0);
    };
    if innermost.pc != start.pc {
        let rule = stack::cached_rule_of(kept.shortcuts, start.pc);
        *innermost =
            Innermost { pc: start.pc, frame_bytes: rule.and_then(Rule::plain_frame_bytes).unwrap_or(0) };
    }
    let address = start.sp.wrapping_add(innermost.frame_bytes).wrapping_sub(8);
    // SAFETY: inside the mapped stack, checked before.
    let return_address = if range.may_read(address, start.sp, false) { unsafe { read(address) } } else { 0 };
    Tag::of(start, return_address)
}

/// The node of the stack that begins at `start`, if a recent stack went from there to a frame of the kept one.
///
/// The kept stack stays as it is where two or more take turns: each is found without moving a frame. One that comes again and again is kept in
/// its stead. (The agent's samples over those of the program's own code, in turn: Python 0.328 with each one kept, 0.283 so; jq 0.129 and
/// 0.110; Node 0.278 and 0.262.)
#[inline(always)]
pub(crate) fn take(scope: &mut Scope, tag: Tag, start: Start, range: StackRange) -> Recent {
    let kept = &mut scope.level().kept;
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    let Some(Shortcuts { ways, pairs, .. }) = (unsafe { kept.shortcuts.as_mut() }) else {
        return Recent::Unknown;
    };
    kept.settle_hashes();
    let frames = KeptFrames { frames: kept.frames, depth: kept.depth, code_epoch: kept.code_epoch };
    // SAFETY: the stack pointer lies in `range` (an empty one has no upper end, and nothing is found); `depth` frames are kept.
    let found = unsafe { ways.find(tag, start, range.high, frames) };
    let Some(way) = found else {
        kept.way_misses = kept.way_misses.saturating_add(MISS).min(MISSES);
        kept.finds_by_return |= kept.way_misses == MISSES;
        return Recent::Unknown;
    };
    kept.way_misses = kept.way_misses.saturating_sub(1);
    kept.finds_by_return &= kept.way_misses != 0;
    // SAFETY: the base was found among the kept frames, and lies on the current stack with its words outwards of it.
    if !unsafe { words_stand(kept, pairs, way.base_index as usize) } {
        return Recent::Unknown;
    }
    let is_last = core::ptr::eq(kept.last_way, way);
    let is_next = kept.last_way_capture == kept.capture_count.wrapping_sub(1);
    kept.last_way_count = if is_last && is_next { kept.last_way_count.wrapping_add(1) } else { 0 };
    kept.last_way = way;
    kept.last_way_capture = kept.capture_count;
    if kept.last_way_count >= REPEATS {
        return Recent::ComesAgain;
    }
    if is_special() { take_specially(scope, start, way) } else { Recent::Node(way.node) }
}

/// Whether the words from a kept frame outwards are as they were.
///
/// # Safety
/// 1. The frame is kept, and its words are readable.
#[inline(always)]
unsafe fn words_stand(kept: &mut Kept, pairs: &mut WordPairs, frame_index: usize) -> bool {
    if kept.is_in_pairs {
        // SAFETY: (1).
        return unsafe { pairs.stand(frame_index) };
    }
    kept.compared_count = kept.compared_count.wrapping_add(1);
    if kept.compared_count == COMPARED {
        // SAFETY: `depth` frames are kept, with their words.
        unsafe {
            let frames = core::slice::from_raw_parts(kept.frames, kept.depth);
            kept.is_in_pairs = pairs.lay_out(frames, kept.words);
        }
    }
    // SAFETY: (1).
    unsafe { kept.first_change(kept.frame(frame_index).words_end as usize) == 0 }
}

/// As for any stack, with its frames laid out.
#[cold]
#[inline(never)]
fn take_specially(scope: &mut Scope, start: Start, way: &Way) -> Recent {
    let kept = &mut scope.level().kept;
    let mut depth = (way.base_index as usize).wrapping_add(1);
    // SAFETY: the base is among the kept frames, and there is room for as many frames as are kept at most; nothing is being unwound. They are not
    // changed until `finish_specially` has returned.
    let frames = unsafe {
        let base = *kept.frame(way.base_index as usize);
        core::ptr::copy_nonoverlapping(kept.frames, kept.fresh, depth);
        for pc in way.return_addresses() {
            if depth >= kept.capacity {
                return Recent::Unknown;
            }
            // Only the addresses are looked at.
            *kept.fresh.add(depth) = Frame { pc, ..base };
            depth = depth.wrapping_add(1);
        }
        core::slice::from_raw_parts(kept.fresh, depth)
    };
    Recent::Node(finish_specially(scope, way.node, start, frames, None))
}

/// Keeps the way that the stack took over `fresh` frames down to the `base` kept ones, if it is a short one.
#[inline(always)]
pub(crate) fn keep(scope: &mut Scope, tag: Tag, start: Start, base: usize, fresh: usize) {
    let is_outermost_level = scope.depth() == 0;
    let kept = &mut scope.level().kept;
    if base == 0
        || fresh == 0
        || kept.is_unprovable
        || kept.depth != base.wrapping_add(fresh)
        || !is_outermost_level
        || !Shortcuts::is_there(kept)
    {
        return;
    }
    let Some(process) = AGENT.fork_local() else { return };
    // SAFETY: a table of this level alone; `base + fresh` frames are kept with the words up to the last one's end.
    unsafe {
        let unwound = Unwound {
            start,
            code_epoch: kept.code_epoch,
            node: kept.node,
            base: *kept.frame(base - 1),
            base_index: base - 1,
            frames: core::slice::from_raw_parts(kept.frames.add(base), fresh),
            words: kept.words,
        };
        (*kept.shortcuts).ways.keep(tag, &unwound, &process.grown_ways_bytes);
    }
}
