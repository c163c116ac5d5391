//! Heaps and arenas inside of the program's main heap whose blocks end all at once: mimalloc's
//! heaps (`mi_heap_destroy`), jemalloc's arenas (`arena.N.destroy` and `.reset`, by name and by
//! number).
//!
//! A block that is made in one is said to be of it; then its end ends them. What is made there
//! without its being named (as a thread's default) is not.

use core::ffi::c_char;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use heapr_wire::{FLAG_STACK_DESTROY, HEAP_MALLOC};

use crate::hooks::forwarded::{self, run_alloc, run_realloc};
use crate::hooks::{Caller, inner_calls, stack_for};
use crate::record::events;
use crate::record::thread::Scope;

/// Bits below the arena's number in the flags of jemalloc's functions.
const ARENA_SHIFT: u32 = 20;
/// Flags are no larger.
const FLAGS_END: usize = 1 << 32;
/// Words of a name in numbers: `arena`, which, what becomes of it.
const MIB_WORDS: usize = 3;

/// The first and the last word of the names that end an arena's blocks, plus one: 0: unknown.
static ENDINGS: [[AtomicU64; 2]; 2] = [const { [const { AtomicU64::new(0) }; 2] }; 2];

/// Which pool is meant by an argument: mimalloc's heap, or what jemalloc's flags say. 0: none.
pub(crate) fn pool_of(argument: usize) -> usize {
    if argument < FLAGS_END { argument >> ARENA_SHIFT } else { argument }
}

fn pool_of_arena(arena: usize) -> usize {
    arena.wrapping_add(1)
}

/// A new block is of a pool, unless an outer call of the allocator's makes it.
pub(crate) fn join(block: usize, argument: usize, caller: Caller) {
    let pool = pool_of(argument);
    if block == 0 || pool == 0 {
        return;
    }
    let Some(begun) = inner_calls::begin(caller.entry_sp()) else { return };
    inner_calls::end(begun);
    if let Some(mut scope) = Scope::enter(caller.sp()) {
        events::pool_joined(&mut scope, HEAP_MALLOC, block, pool);
    }
}

/// A call of the program by which blocks are made in a pool.
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

/// Reallocates a block into a pool. One that stays in its place stays in its pool.
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

/// All blocks of a pool are about to be free.
#[cold]
fn end(pool: usize, caller: Caller) {
    if let Some(mut scope) = Scope::enter(caller.sp()) {
        let stack = stack_for(&mut scope, caller, FLAG_STACK_DESTROY);
        events::pool_cleared(&mut scope, HEAP_MALLOC, pool, stack);
    }
}

/// Before `mi_heap_destroy(heap)`.
pub(crate) fn before_destroy(_real: &AtomicUsize, &[heap, ..]: &[usize; 4], caller: Caller) {
    end(heap, caller);
}

/// Before `mi_heap_delete(heap)`: its blocks live on.
pub(crate) fn before_delete(_real: &AtomicUsize, &[heap, ..]: &[usize; 4], caller: Caller) {
    if let Some(mut scope) = Scope::enter(caller.sp()) {
        events::pool_dissolved(&mut scope, HEAP_MALLOC, heap);
    }
}

/// Before `mallctl(name, …)`.
pub(crate) fn before_control(_real: &AtomicUsize, &[name, values @ ..]: &[usize; 4], caller: Caller) {
    // It refuses to end an arena if it is given anything to read or write.
    if values != [0; 3] {
        return;
    }
    // SAFETY: the function is about to read the name itself.
    if let Some((arena, _)) = unsafe { ending_named(name as *const c_char) } {
        end(pool_of_arena(arena), caller);
    }
}

/// Before `mallctlbymib(mib, words, …)`.
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

/// Before `mallctlnametomib(name, mib, words)`: what a name is in numbers is the build's own.
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

/// The arena whose blocks a name says to end, and which of the two words it uses.
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
        // SAFETY: (1): nothing is read behind the end.
        let byte = unsafe { *name.add(length) } as u8;
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
