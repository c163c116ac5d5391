//! Taking a recent stack's way to a frame of the kept stack, and keeping the way that was unwound: see [`crate::shortcut`].
//!
//! ```text
//! kept     [main] [loop] [f] [g]
//! recent          [loop] [h] [k]        the way of a stack that began at k: its frames, the base that it leads to, its node
//! now      [main] [loop] [h] [k]        as recent: the way's words and those from the base outwards are as they were
//! ```

use crate::bounds::StackRange;
use crate::kept_stack::{Frame, Kept, Start};
use crate::shortcut::{FRAMES_MAX, Found, Shortcuts, WORDS_MAX};
use crate::stack::{finish, finish_specially, is_special};
use crate::thread::Scope;

/// The node of the stack that begins at `start`, if a recent stack went from there to a frame of the kept one.
///
/// The kept stack stays as it is where two or more take turns: each is found without moving a frame. One that comes twice in a row is kept in its
/// stead. (The agent's samples over those of the program's own code, in turn: Python 0.328 with each one kept, 0.283 so; jq 0.129 and 0.110; Node
/// 0.278 and 0.262.)
#[inline(always)]
pub(crate) fn take(scope: &mut Scope, start: Start, range: StackRange) -> Option<u32> {
    let kept = &mut scope.level().kept;
    // SAFETY: null, or a table of this level alone, which is never unmapped.
    let shortcuts = unsafe { kept.shortcuts.as_ref() }?;
    // SAFETY: the stack pointer lies in `range` (an empty one has no upper end, and nothing is found); `depth` frames are kept.
    let found = unsafe { shortcuts.find(start, kept.code_epoch, range.high, kept.frames, kept.depth) }?;
    // SAFETY: the base was found among the kept frames.
    let words_end = unsafe { kept.frame(found.base_index).words_end };
    let depth = found.base_index.wrapping_add(1).wrapping_add(found.frames.len());
    // SAFETY: the base lies on the current stack, and its words outwards of it.
    if depth > kept.capacity || unsafe { kept.first_change(words_end as usize) } != 0 {
        return None;
    }
    let way = found.frames.as_ptr();
    let comes_again = kept.last_way == way && kept.last_way_capture == kept.capture_count.wrapping_sub(1);
    kept.last_way = way;
    kept.last_way_capture = kept.capture_count;
    if comes_again {
        // SAFETY: the base was found among the kept frames, and the depth is within the capacity.
        unsafe { keep_way(kept, &found, words_end) };
        return Some(finish(scope, found.node, start));
    }
    if !is_special() {
        return Some(found.node);
    }
    // SAFETY: room for as many frames as are kept at most, of which the depth is one number; nothing is being unwound. They are not changed until
    // `finish_specially` has returned.
    let frames = unsafe {
        for index in 0..=found.base_index {
            *kept.fresh.add(index) = *kept.frames.add(index);
        }
        for (offset, frame) in found.frames.iter().enumerate() {
            *kept.fresh.add(found.base_index.wrapping_add(1).wrapping_add(offset)) = *frame;
        }
        core::slice::from_raw_parts(kept.fresh, depth)
    };
    Some(finish_specially(scope, found.node, start, frames))
}

/// Keeps the stack that a way leads to.
///
/// # Safety
/// 1. The way's base is among the kept frames, with `words_end` words.
/// 2. There is room for its frames and, at WORDS_PER_FRAME words each, for their words.
#[inline(always)]
unsafe fn keep_way(kept: &mut Kept, found: &Found<'_>, words_end: u32) {
    // SAFETY: (1), (2).
    unsafe {
        let words = kept.words.add(words_end as usize);
        for (offset, word) in found.words.iter().enumerate() {
            *words.add(offset) = *word;
        }
        let frames = kept.frames.add(found.base_index.wrapping_add(1));
        for (offset, frame) in found.frames.iter().enumerate() {
            *frames.add(offset) = Frame { words_end: words_end.wrapping_add(frame.words_end), ..*frame };
        }
    }
    kept.depth = found.base_index.wrapping_add(1).wrapping_add(found.frames.len());
    kept.node = found.node;
}

/// Keeps the way that the stack took over `fresh` frames down to the `base` kept ones, if it is a short one.
#[inline(always)]
pub(crate) fn keep(scope: &mut Scope, start: Start, base: usize, fresh: usize) {
    let is_outermost_level = scope.depth() == 0;
    let kept = &mut scope.level().kept;
    if base == 0
        || fresh == 0
        || fresh > FRAMES_MAX
        || kept.is_unprovable
        || kept.depth != base.wrapping_add(fresh)
        || !is_outermost_level
    {
        return;
    }
    if !Shortcuts::is_there(kept) {
        return;
    }
    // SAFETY: a table of this level alone; `base + fresh` frames are kept with the words up to the last one's end.
    unsafe {
        let frames = core::slice::from_raw_parts(kept.frames.add(base), fresh);
        let base_frame = *kept.frame(base - 1);
        let words_end = kept.frame(kept.depth - 1).words_end;
        let count = words_end.wrapping_sub(base_frame.words_end) as usize;
        if count > WORDS_MAX {
            return;
        }
        let words = core::slice::from_raw_parts(kept.words.add(base_frame.words_end as usize), count);
        (*kept.shortcuts).keep(start, kept.code_epoch, (base_frame, base - 1), kept.node, frames, words);
    }
}
