//! Fast path of calls of embedded allocators' functions: one block is allocated, or one freed, by a
//! thread that is in no other call. Also the recording of separate heaps.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use heapr_wire::{
    FLAG_STACK_ALLOC, HEAP_MALLOC, INNER_HEAP_FIRST, INNER_HEAPS, InnerFunction, PlainCall, Signature,
};

use crate::hooks::hooked_function::{Arguments, HookedFunction, Outcome};
use crate::hooks::{self, Caller, forwarded, sampling, stack_for};
use crate::record::events;
use crate::record::thread::{Outermost, Scope};

/// Names of the separate heaps, padded with zeros; the injector fills them in.
pub(crate) static HEAP_NAMES: [[AtomicU64; 4]; INNER_HEAPS] =
    [const { [const { AtomicU64::new(0) }; 4] }; INNER_HEAPS];

/// 1: the recorder knows the heap.
static TOLD: [AtomicU32; INNER_HEAPS] = [const { AtomicU32::new(0) }; INNER_HEAPS];

/// Records a call as [`crate::hooks::inner_functions`] does (checked by heapr's tests `victims` and
/// `inner_allocators`). Returns `None`, without any effect, if the call needs the general path.
#[inline(always)]
pub(crate) fn run(
    kept: &HookedFunction,
    function: &InnerFunction,
    all: &Arguments,
    caller: Caller,
) -> Option<Outcome> {
    let word = function.signature.load(Relaxed);
    let plain = PlainCall::of_word_untrusted(word)?;
    // A sample may have been drawn on the way here.
    if sampling::is_on() || !Outermost::begin_plainly(caller.sp(), core::ptr::from_ref(kept) as usize) {
        return None;
    }
    let caller = caller.of_function(Signature::called_of(word));
    let heap = function.heap.load(Relaxed) as u8;
    let argument = |place: usize| all.get(place).copied().unwrap_or(0);
    let size = match plain {
        PlainCall::Allocate(place) => argument(place),
        PlainCall::AllocateFixed(bytes) => bytes,
        PlainCall::Free(place) => {
            if heap == HEAP_MALLOC {
                hooks::note_free(argument(place) as *mut _, caller);
            } else {
                note_free(heap, argument(place), caller);
            }
            forwarded::call(kept.real, *all);
            Outermost::end_plainly();
            return Some(Outcome::Silent);
        }
    };
    let block = forwarded::call(kept.real, *all);
    Outermost::end_plainly();
    if heap == HEAP_MALLOC {
        hooks::allocated(block as *mut _, size, caller);
    } else {
        note_block(heap, block, size, 0, caller);
    }
    Some(Outcome::Answered(block))
}

/// Records that a block of a separate heap is about to be freed.
#[inline(never)]
pub(crate) fn note_free(heap: u8, block: usize, caller: Caller) {
    if block != 0
        && let Some(mut scope) = Scope::enter(caller.sp())
    {
        events::free(&mut scope, heap, block);
    }
}

/// Records a new block of a separate heap, unless the call failed (0).
#[inline(never)]
pub(crate) fn note_block(heap: u8, block: usize, size: usize, pool: usize, caller: Caller) {
    if block != 0
        && let Some(mut scope) = Scope::enter(caller.sp())
    {
        tell_of(&mut scope, heap, caller);
        let stack = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
        if pool == 0 {
            events::alloc(scope.handle(), heap, block, size, stack);
        } else {
            events::pool_alloc(&mut scope, heap, block, size, stack, pool);
        }
    }
}

/// Records a heap's name, once. (Another thread's events of that heap may precede it: the number
/// belongs to this heap alone.)
fn tell_of(scope: &mut Scope, heap: u8, caller: Caller) {
    let place = usize::from(heap).wrapping_sub(INNER_HEAP_FIRST);
    let (Some(told), Some(words)) = (TOLD.get(place), HEAP_NAMES.get(place)) else { return };
    if told.load(Relaxed) != 0 || told.swap(1, Relaxed) != 0 {
        return;
    }
    let mut name = [0_u8; 32];
    for (bytes, word) in name.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.load(Relaxed).to_le_bytes());
    }
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let stack = stack_for(scope, caller, heapr_wire::FLAG_STACK_CREATE);
    let handle = 1 << 8 | u64::from(heap);
    events::heap_created(scope, heap, name.get(..length).unwrap_or_default(), handle, stack);
}
