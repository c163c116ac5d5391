//! Fast path of unwinding, for plain frames. It must give what [`crate::stack::any_frames`] gives;
//! heapr's test `victims` checks that.
//!
//! The rules of plain frames need the stack pointer alone. In code compiled without frame pointers
//! nearly all frames are plain. The caller's stack pointer lies a fixed number of bytes above, and
//! the return address right below it. Such a frame is passed with one lookup and one read. For any
//! other frame [`crate::stack`] must find out whether the frame pointer is needed, which words to
//! cache, and which stack it is on. For plain frames all of this is known beforehand:
//!
//! ```text
//! cached [main] [loop] [base] [f] [g]
//! now    [main] [loop] [base] [x] [y] [z]
//! ```
//! None of base, x, y and z needs a frame pointer. Each of x, y and z has read one word: the return
//! address, below the caller's stack pointer.
//!
//! If a frame is not plain, the cached stack is unchanged, and the general path follows. (Of
//! 640,000 unwound stacks of clang 607,000 are plain, with 6.6 frames each.)

use crate::arch::RETURN_ADDRESS_BELOW;
use crate::frames::cached_stack::{CachedStack, FIRST_CAPACITY};
use crate::frames::frame::{Frame, Start, Word, read};
use crate::frames::path_node;
use crate::frames::stack_range::StackRange;
use crate::frames::suffix_table::Tag;
use crate::record::thread::Scope;
use crate::record::writing;
use crate::stack;
use crate::stack::suffix_cache;

/// Largest number of frames that are passed; a thread's first arrays have room for them.
const PASSED_MAX: usize = 64;

const _: () = assert!(PASSED_MAX <= FIRST_CAPACITY);

/// Returns the node of the stack that begins at `start`, if all its frames out to one of the cached
/// stack are plain. Then the stack is cached. `new`: the tag of the stack's suffix if that is not
/// known, and is to be remembered.
#[inline(never)]
pub(crate) fn unwind(scope: &mut Scope, start: Start, range: StackRange, new: Option<Tag>) -> Option<u32> {
    let kept = &mut scope.level().kept;
    let (base, passed) = pass(kept, start, range)?;
    enter(kept, base, passed, start.bp);
    if let Some(tag) = new {
        suffix_cache::keep(scope, tag, start, base, passed);
    }
    let level = scope.level();
    // SAFETY: null, or a slot of the pool, which is never unmapped.
    if let Some(slot) = unsafe { level.slot.as_ref() } {
        writing::add(&slot.stack_count, 1);
        writing::add(&slot.frames_unwound, passed as u64);
    }
    let node = level.kept.node;
    Some(stack::finish(scope, node, start))
}

/// Passes the frames out to one that is cached, and leaves each one's state among the fresh ones,
/// innermost first. Returns the number of cached frames that are valid, and the number of passed
/// ones.
#[inline(always)]
fn pass(kept: &CachedStack, start: Start, range: StackRange) -> Option<(usize, usize)> {
    let mut base = kept.depth;
    let mut passed = 0_usize;
    let (mut pc, mut sp) = (start.pc, start.sp);
    loop {
        let met = loop {
            // SAFETY: base is at most the depth, and not 0.
            let met = unsafe { kept.frame(base.checked_sub(1)?) };
            if met.sp >= sp {
                break met;
            }
            base = base.wrapping_sub(1);
        };
        if met.sp == sp && met.pc == pc {
            // SAFETY: the frame met lies on the stack that is being unwound, and its words outwards
            // of it.
            let stands = !met.needs_bp && unsafe { kept.first_change(met.words_end as usize) } == 0;
            return (stands && base.wrapping_add(passed) <= kept.capacity).then_some((base, passed));
        }
        let rule = stack::cached_rule(kept, pc)?;
        let caller_sp = sp.wrapping_add(rule.plain_frame_bytes()?);
        let address = caller_sp.wrapping_sub(RETURN_ADDRESS_BELOW);
        if passed >= PASSED_MAX || caller_sp <= sp || !range.may_read(address, sp, false) {
            return None;
        }
        // SAFETY: there is room for at least the first capacity of frames.
        unsafe {
            let frame = kept.fresh.add(passed);
            (*frame).pc = pc;
            (*frame).sp = sp;
            (*frame).settles_bp = rule.restores_bp();
        }
        passed = passed.wrapping_add(1);
        // SAFETY: inside the mapped stack, checked above.
        pc = unsafe { read(address) };
        sp = caller_sp;
        if pc == 0 {
            return None;
        }
    }
}

/// Appends the passed frames to the `base` cached ones, of which there is at least one.
#[inline(always)]
fn enter(kept: &mut CachedStack, base: usize, passed: usize, bp: usize) {
    // SAFETY: a frame was met; base + passed frames, each with a word, fit the capacity.
    unsafe {
        path_node::hash_fresh(kept, base, passed);
        let met = *kept.frame(base.wrapping_sub(1));
        let mut caller = (met.pc, met.sp);
        let mut words_end = met.words_end;
        for number in 0..passed {
            let frame = &*kept.fresh.add(passed - 1 - number);
            let (pc, sp) = (frame.pc, frame.sp);
            *kept.words.add(words_end as usize) =
                Word { address: caller.1.wrapping_sub(RETURN_ADDRESS_BELOW), value: caller.0 };
            words_end = words_end.wrapping_add(1);
            *kept.frame(base.wrapping_add(number)) = Frame {
                pc,
                sp,
                // No frame needs it.
                bp,
                hash: frame.hash,
                words_end,
                is_exact: false,
                needs_bp: false,
                settles_bp: frame.settles_bp,
                has_bp_word: false,
            };
            caller = (pc, sp);
        }
    }
    kept.depth = base.wrapping_add(passed);
    kept.hashed = kept.depth;
    path_node::enter(kept, base);
}
