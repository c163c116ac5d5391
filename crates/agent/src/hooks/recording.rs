//! Recording of calls of an allocator's functions.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Relaxed;

use heapr_wire::{
    FLAG_SAMPLED, FLAG_STACK_ALLOC, FLAG_STACK_FREE, FLAG_STACK_SPECIAL, HEAP_MALLOC, PACKED_SIZE_MAX,
    stack_word,
};

use super::around::{
    note_resize_without_block, outermost, stack_after_resize, stack_before_resize, stored_block,
};
use super::caller::{Caller, node_of, stack_for};
use super::{Pointer, sampling};
use crate::arch::entry::Entry;
use crate::frames::frame::Start;
use crate::languages;
use crate::record::events;
use crate::record::thread::Scope;
use crate::record::writing::write_short;
use crate::stack;
use crate::state::AGENT;

/// Records a new block, or a failed call.
#[inline(always)]
pub(crate) fn allocated(block: Pointer, size: usize, caller: Caller) {
    // `plain_bytes_end` is 0 while there are language frames: then every call takes the slow path.
    if size >= AGENT.plain_bytes_end.load(Relaxed) || !allocated_plainly::<false>(block, size, caller) {
        allocated_otherwise(block, size, caller.entry, caller.bp, caller.called);
    }
}

/// Records what [`allocated`] does, without a call for programs with language frames: for the
/// function from which nearly all blocks come.
#[inline(always)]
pub(crate) fn allocated_by_malloc(block: Pointer, size: usize, caller: Caller) {
    let is_recorded = if size < AGENT.plain_bytes_end.load(Relaxed) {
        allocated_plainly::<false>(block, size, caller)
    } else {
        is_plain_with_frames(size) && allocated_plainly::<true>(block, size, caller)
    };
    if !is_recorded {
        allocated_in_general(block, size, caller.entry, caller.bp, caller.called);
    }
}

#[inline(always)]
fn is_plain_with_frames(size: usize) -> bool {
    languages::are_spoken() && size <= PACKED_SIZE_MAX
}

/// Slow path of [`allocated`]: large blocks, special flags, or language frames.
#[cold]
#[inline(never)]
extern "C" fn allocated_otherwise(block: Pointer, size: usize, entry: Entry, bp: usize, called: u8) {
    let caller = Caller::new(entry, bp, called);
    if !is_plain_with_frames(size) || !allocated_plainly::<true>(block, size, caller) {
        allocated_in_general(block, size, entry, bp, called);
    }
}

/// Fast path of [`allocated_in_general`]; must record the same if there is no special flag (heapr's
/// test `victims`). `SPEAKS`: the stack may have language frames. Returns `false` if the call was
/// not recorded.
#[inline(always)]
fn allocated_plainly<const SPEAKS: bool>(block: Pointer, size: usize, caller: Caller) -> bool {
    let Some(mut scope) = Scope::enter_plainly(caller.sp()) else { return false };
    let Some(pool) = AGENT.pool() else { return false };
    let flags = pool.control().flags.load(Relaxed);
    if flags & (FLAG_STACK_ALLOC | FLAG_STACK_SPECIAL | FLAG_SAMPLED) != FLAG_STACK_ALLOC || block.is_null() {
        return false;
    }
    let mut node = stack::capture_plainly(&mut scope, caller.start());
    if SPEAKS {
        let Start { pc, sp, bp } = caller.start();
        node = languages::whole_stack_plainly(scope.handle(), pc, sp, bp, node);
    }
    events::alloc_of_malloc(&mut scope, block as usize, size as u32, stack_word(node, caller.called));
    true
}

/// General path: records a new block, or a failed call, with any special flags.
#[cold]
#[inline(never)]
extern "C" fn allocated_in_general(block: Pointer, size: usize, entry: Entry, bp: usize, called: u8) {
    let caller = Caller::new(entry, bp, called);
    if sampling::is_on() {
        return sampling::allocated(block, size, caller);
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    let stack = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
    if block.is_null() {
        events::failed(&mut scope, size, stack);
    } else if size <= PACKED_SIZE_MAX {
        events::alloc_of_malloc(&mut scope, block as usize, size as u32, stack);
    } else {
        events::alloc(scope.handle(), HEAP_MALLOC, block as usize, size, stack);
    }
}

/// Calls `real` for a new block, and `record` after it. `NESTS`: see [`outermost`].
#[inline(always)]
pub(crate) fn new_block<const NESTS: bool>(
    caller: Caller,
    real: impl FnOnce() -> Pointer,
    record: impl FnOnce(Pointer),
) -> Pointer {
    outermost::<NESTS, _, _>(caller, || {}, || {}, real, |(), &block| record(block))
}

/// Records that a block is about to be freed.
#[inline(always)]
pub(crate) fn about_to_free(block: Pointer, caller: Caller) {
    if block.is_null() {
        return;
    }
    if sampling::is_on() {
        return sampling::about_to_free(block, caller);
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    let carries_stack =
        AGENT.pool().is_some_and(|pool| pool.control().flags.load(Relaxed) & FLAG_STACK_FREE != 0);
    if carries_stack {
        let node = node_of(&mut scope, caller);
        events::free_with_stack(&mut scope, HEAP_MALLOC, block as usize, stack_word(node, caller.called));
    } else {
        events::free(&mut scope, HEAP_MALLOC, block as usize);
    }
}

/// Records a free as [`about_to_free`] does, by the fast path if there is no special flag.
#[inline(always)]
pub(crate) fn note_free(block: Pointer, caller: Caller) {
    if sampling::is_on() || !free_plainly(block, caller.entry) {
        note_free_in_general(block, caller.entry, caller.bp, caller.called);
    }
}

#[cold]
#[inline(never)]
extern "C" fn note_free_in_general(block: Pointer, entry: Entry, bp: usize, called: u8) {
    about_to_free(block, Caller::new(entry, bp, called));
}

/// Records a free before `real`. `NESTS`: see [`outermost`].
#[inline(always)]
pub(crate) fn freed<const NESTS: bool, T>(block: Pointer, caller: Caller, real: impl FnOnce() -> T) -> T {
    outermost::<NESTS, _, _>(caller, || {}, || about_to_free(block, caller), real, |(), _| {})
}

/// Fast path of [`about_to_free`]; must record the same if there is no special flag (heapr's test
/// `victims`). Returns `false` if the free was not recorded.
#[inline(always)]
pub(crate) fn free_plainly(block: Pointer, entry: Entry) -> bool {
    if block.is_null() {
        return false;
    }
    let Some(mut scope) = Scope::enter_plainly(entry.sp()) else { return false };
    let Some(pool) = AGENT.pool() else { return false };
    if pool.control().flags.load(Relaxed) & FLAG_STACK_FREE != 0 {
        return false;
    }
    write_short(scope.level(), block as usize, [])
}

/// Records a realloc around `real`: see [`crate::hooks`] for the order, and [`outermost`] for
/// `NESTS`.
#[inline(always)]
pub(crate) fn reallocated<const NESTS: bool>(
    block: Pointer,
    size: usize,
    caller: Caller,
    real: impl FnOnce() -> Pointer,
) -> Pointer {
    if block.is_null() {
        return new_block::<NESTS>(caller, real, |new| allocated(new, size, caller));
    }
    if sampling::is_on() {
        return sampling::reallocated::<NESTS>(block, size, caller, real);
    }
    let prepare = || {
        let mut early = None;
        let is_prepared = Scope::enter(caller.sp()).is_some_and(|mut scope| {
            early = stack_before_resize(&mut scope, caller);
            events::realloc_prepare(&mut scope, HEAP_MALLOC, block as usize)
        });
        (is_prepared, early)
    };
    let commit = |(is_prepared, early): (bool, Option<u64>), &new: &Pointer| {
        let Some(mut scope) = Scope::enter(caller.sp()) else { return };
        if !is_prepared {
            // The recorder does not know that the old block may move, so the result can only be
            // counted as lost.
            return;
        }
        if new.is_null() {
            note_resize_without_block(&mut scope, block, size);
        } else {
            let stack = stack_after_resize(&mut scope, caller, early);
            events::realloc_commit(&mut scope, HEAP_MALLOC, new as usize, size, stack);
        }
    };
    outermost::<NESTS, _, _>(caller, || {}, prepare, real, commit)
}

/// Calls a function that stores the new block at `answer` and returns a status; see [`new_block`].
#[inline(always)]
pub(crate) fn aligned_block<const NESTS: bool>(
    answer: *mut Pointer,
    size: usize,
    caller: Caller,
    real: impl FnOnce() -> c_int,
) -> c_int {
    let mut status = 0;
    let block = || {
        status = real();
        stored_block(answer, status)
    };
    new_block::<NESTS>(caller, block, |block| allocated(block, size, caller));
    status
}
