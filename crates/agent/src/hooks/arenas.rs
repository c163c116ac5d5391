//! Heaps and arenas inside the program's main heap whose blocks all end at once. They are
//! mimalloc's heaps (`mi_heap_destroy`) and jemalloc's arenas (`arena.N.destroy` and `.reset`, by
//! name and by number).
//!
//! A block that is allocated in one is recorded as a member of that pool, and the pool's end ends
//! the block. Blocks that come from it without being named (as from a thread's default arena) are
//! not members.

use core::ffi::c_char;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use heapr_wire::{FLAG_STACK_DESTROY, HEAP_MALLOC};

use crate::hooks::forwarded::{self, run_alloc, run_realloc};
use crate::hooks::{Caller, inner_calls, stack_for};
use crate::record::events;
use crate::record::thread::Scope;

/// Number of bits below the arena's number in the flags of jemalloc's functions.
const ARENA_SHIFT: u32 = 20;
/// Limit of the flags' values.
const FLAGS_END: usize = 1 << 32;
/// Number of words of a name in numeric form: `arena`, its index, the operation.
const MIB_WORDS: usize = 3;

/// The first and the last word (plus one) of the names that end an arena's blocks; 0: unknown.
static ENDINGS: [[AtomicU64; 2]; 2] = [const { [const { AtomicU64::new(0) }; 2] }; 2];

/// Returns the pool that an argument names: mimalloc's heap, or the arena in jemalloc's flags; 0:
/// no pool.
pub(crate) fn pool_of(argument: usize) -> usize {
    if argument < FLAGS_END { argument >> ARENA_SHIFT } else { argument }
}

fn pool_of_arena(arena: usize) -> usize {
    arena.wrapping_add(1)
}

/// Records that a new block belongs to a pool, unless an outer call of the allocator makes the
/// block.
pub(crate) fn join(block: usize, argument: usize, caller: Caller) {
    let pool = pool_of(argument);
    if block == 0 || pool == 0 {
        return;
    }
    let Some(begun) = inner_calls::begin(caller.entry()) else { return };
    inner_calls::end(begun);
    if let Some(mut scope) = Scope::enter(caller.sp()) {
        events::pool_joined(&mut scope, HEAP_MALLOC, block, pool);
    }
}

/// Makes and records a call of the program that allocates in a pool.
pub(crate) fn run_alloc_in(
    real: &AtomicUsize,
    all: [usize; 4],
    size: usize,
    pool: usize,
    caller: Caller,
) -> usize {
    let block = run_alloc(real, all, size, caller);
    join(block, pool, caller);
    block
}

/// Reallocates a block into a pool. A block that is not moved stays in its pool.
pub(crate) fn run_realloc_in(
    real: &AtomicUsize,
    all: [usize; 4],
    (block, size): (usize, usize),
    pool: usize,
    caller: Caller,
) -> usize {
    let new = run_realloc(real, all, block, size, caller);
    if new != block {
        join(new, pool, caller);
    }
    new
}

/// Records that all blocks of a pool are about to be freed.
#[cold]
fn end(pool: usize, caller: Caller) {
    if let Some(mut scope) = Scope::enter(caller.sp()) {
        let stack = stack_for(&mut scope, caller, FLAG_STACK_DESTROY);
        events::pool_cleared(&mut scope, HEAP_MALLOC, pool, stack);
    }
}

/// Hook that runs before `mi_heap_destroy(heap)`.
pub(crate) fn before_destroy(_real: &AtomicUsize, &[heap, ..]: &[usize; 4], caller: Caller) {
    end(heap, caller);
}

/// Hook that runs before `mi_heap_delete(heap)`, after which the heap's blocks stay live.
pub(crate) fn before_delete(_real: &AtomicUsize, &[heap, ..]: &[usize; 4], caller: Caller) {
    if let Some(mut scope) = Scope::enter(caller.sp()) {
        events::pool_dissolved(&mut scope, HEAP_MALLOC, heap);
    }
}

/// Hook that runs before `mallctl(name, …)`.
pub(crate) fn before_control(_real: &AtomicUsize, &[name, values @ ..]: &[usize; 4], caller: Caller) {
    // The function refuses to end an arena if there is a value to read or write.
    if values != [0; 3] {
        return;
    }
    // SAFETY: the function is about to read the name itself.
    if let Some((arena, _)) = unsafe { ending_named(name as *const c_char) } {
        end(pool_of_arena(arena), caller);
    }
}

/// Hook that runs before `mallctlbymib(mib, words, …)`.
pub(crate) fn before_control_by_mib(
    _real: &AtomicUsize,
    &[mib, words, values @ ..]: &[usize; 4],
    caller: Caller,
) {
    if words != MIB_WORDS || mib == 0 || values != [0; 2] {
        return;
    }
    // SAFETY: as many words as the caller says, which the function is about to read.
    let [first, arena, last] = unsafe { *(mib as *const [usize; MIB_WORDS]) };
    let is_ending = ENDINGS.iter().any(|[known_first, known_last]| {
        known_first.load(Relaxed) == (first as u64).wrapping_add(1)
            && known_last.load(Relaxed) == (last as u64).wrapping_add(1)
    });
    if is_ending {
        end(pool_of_arena(arena), caller);
    }
}

/// Hook that runs before `mallctlnametomib(name, mib, words)`: the numeric form of a name depends
/// on the build.
pub(crate) fn before_name_to_mib(real: &AtomicUsize, &[name, ..]: &[usize; 4], _caller: Caller) {
    // SAFETY: the function is about to read the name itself.
    let Some((_, number)) = (unsafe { ending_named(name as *const c_char) }) else { return };
    let (mut mib, mut words) = ([0_usize; MIB_WORDS], MIB_WORDS);
    let arguments = [name, (&raw mut mib) as usize, (&raw mut words) as usize, 0];
    let status = forwarded::call(real, arguments) as i32;
    if status == 0
        && words == MIB_WORDS
        && let Some([known_first, known_last]) = ENDINGS.get(number)
    {
        let [first, _, last] = mib;
        known_first.store((first as u64).wrapping_add(1), Relaxed);
        known_last.store((last as u64).wrapping_add(1), Relaxed);
    }
}

/// Parses a name that ends an arena's blocks: returns the arena, and the index of the operation in
/// [`ENDINGS`].
///
/// # Safety
/// 1. Null, or a zero-terminated string.
unsafe fn ending_named(name: *const c_char) -> Option<(usize, usize)> {
    const BEGIN: &[u8] = b"arena.";
    const NAME_BYTES_MAX: usize = 64;
    let mut bytes = [0_u8; NAME_BYTES_MAX];
    if name.is_null() {
        return None;
    }
    let mut length = 0;
    for place in &mut bytes {
        // SAFETY: (1): no byte after the end is read.
        let byte = unsafe { *name.cast::<u8>().add(length) };
        if byte == 0 {
            break;
        }
        *place = byte;
        length = length.wrapping_add(1);
    }
    ending_in(bytes.get(..length)?.strip_prefix(BEGIN)?)
}

fn ending_in(rest: &[u8]) -> Option<(usize, usize)> {
    const ENDS: [&[u8]; 2] = [b".destroy", b".reset"];
    const DIGITS_MAX: usize = 9;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits > DIGITS_MAX {
        return None;
    }
    let (digits, end) = rest.split_at_checked(digits)?;
    let number = ENDS.iter().position(|&known| known == end)?;
    let arena = digits.iter().fold(0_usize, |number, &digit| {
        number.wrapping_mul(10).wrapping_add(usize::from(digit.wrapping_sub(b'0')))
    });
    Some((arena, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_which_arena_ends() {
        let told = |name: &core::ffi::CStr| {
            // SAFETY: a string.
            unsafe { ending_named(name.as_ptr()) }
        };
        assert_eq!(told(c"arena.7.destroy"), Some((7, 0)));
        assert_eq!(told(c"arena.4096.reset"), Some((4096, 1)));
        for other in
            [c"arena.7.purge", c"arena..reset", c"arena.x.reset", c"arenas.create", c"arena.7.resets"]
        {
            assert_eq!(told(other), None, "{other:?}");
        }
        // SAFETY: null.
        assert_eq!(unsafe { ending_named(core::ptr::null()) }, None);
    }

    #[test]
    fn an_arena_is_the_same_pool_by_its_flags_and_by_its_number() {
        let flags = |arena: usize| (arena + 1) << ARENA_SHIFT | 1 << 8;
        assert_eq!(pool_of(flags(5)), pool_of_arena(5));
        assert_eq!(pool_of(1 << 8), 0, "of no arena");
        assert_eq!(pool_of(0x7f00_1234_5000), 0x7f00_1234_5000);
    }
}
