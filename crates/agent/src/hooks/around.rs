//! Parts of a call that [`super::recording`] and [`super::sampling`] share: what is done around the
//! real call.

use core::ffi::c_int;

use heapr_wire::{FLAG_STACK_REALLOC, HEAP_MALLOC};

use super::caller::{Caller, NO_STACK, stack_for};
use super::{Pointer, inner_calls};
use crate::languages;
use crate::record::events;
use crate::record::thread::Scope;

/// Makes a call of the program: runs `before`, `real` and `after`, which gets the results of both.
///
/// `NESTS`: the allocator may make nested calls in the meantime, and this may be one. Of a nested
/// call only `nested` and `real` run.
#[inline(always)]
pub(super) fn outermost<const NESTS: bool, Before, Answer>(
    caller: Caller,
    nested: impl FnOnce(),
    before: impl FnOnce() -> Before,
    real: impl FnOnce() -> Answer,
    after: impl FnOnce(Before, &Answer),
) -> Answer {
    let mut begun = 0;
    if NESTS {
        let Some(found) = inner_calls::begin(caller.entry) else {
            nested();
            return real();
        };
        begun = found;
    }
    let noted = before();
    let answer = real();
    if NESTS {
        inner_calls::end(begun);
    }
    after(noted, &answer);
    answer
}

/// Returns the block that a function has stored at `answer`; null if its status tells a failure.
#[inline(always)]
pub(super) fn stored_block(answer: *mut Pointer, status: c_int) -> Pointer {
    // SAFETY: on success the function has stored a block through the program's pointer.
    if status == 0 { unsafe { *answer } } else { core::ptr::null_mut() }
}

/// Returns the stack of a realloc before the real call, if it must be read then. The frames of a
/// language may lie in the block that moves.
#[inline(always)]
pub(super) fn stack_before_resize(scope: &mut Scope, caller: Caller) -> Option<u64> {
    if languages::are_in_blocks() { Some(stack_for(scope, caller, FLAG_STACK_REALLOC)) } else { None }
}

/// Returns the stack of a realloc after the real call; `early` is that of [`stack_before_resize`].
#[inline(always)]
pub(super) fn stack_after_resize(scope: &mut Scope, caller: Caller, early: Option<u64>) -> u64 {
    match early {
        Some(stack) => stack,
        None => stack_for(scope, caller, FLAG_STACK_REALLOC),
    }
}

/// Records a realloc that has returned no block: with size 0 it has freed the block, otherwise it
/// has failed.
#[inline(always)]
pub(super) fn note_resize_without_block(scope: &mut Scope, block: Pointer, size: usize) {
    if size == 0 {
        events::realloc_commit(scope, HEAP_MALLOC, 0, 0, NO_STACK);
    } else {
        events::realloc_abort(scope, HEAP_MALLOC, block as usize, size);
    }
}
