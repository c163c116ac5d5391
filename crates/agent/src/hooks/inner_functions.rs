//! Functions of embedded allocators, in the program or a library, which no call reaches through the
//! loader. They are found from outside, and hooked by detours.
//!
//! Their callers lie in the same file, so that calls come through [`crate::hooks::all_registers`].
//! Calls that such an allocator makes in turn are not the program's: the outermost call counts.
//! (Examples: Rust's allocation shim calls jemalloc, jemalloc calls mmap, an object allocator calls
//! malloc.)

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_wire::{
    FLAG_STACK_DESTROY, FLAG_STACK_REALLOC, INNER_FUNCTIONS, InnerAction, POOL_BEFORE_BLOCK, Signature,
};

use crate::hooks::all_registers::{self, Arguments, HookedFunction, Outcome};
use crate::hooks::forwarded;
use crate::hooks::inner_table::FUNCTIONS;
use crate::hooks::plain_calls::{note_block, note_free};
use crate::hooks::{self, Caller, arenas, inner_calls, sampling, stack_for};
use crate::record::events;
use crate::record::thread::Scope;

#[allow(clippy::indexing_slicing, reason = "the compiler evaluates it, and refuses an index out of range")]
/// Description of each of [`FUNCTIONS`] for [`all_registers::make_call`].
pub(crate) static KEPT: [HookedFunction; INNER_FUNCTIONS] = {
    const fn kept(number: usize) -> HookedFunction {
        HookedFunction {
            run,
            real: &FUNCTIONS[number].real,
            throwing: &FUNCTIONS[number].own,
            called: 0,
            inner: Some(&FUNCTIONS[number]),
            note_inner: Some(note_inner),
        }
    }
    let mut table = [const { kept(0) }; INNER_FUNCTIONS];
    let mut number = 0;
    while number < INNER_FUNCTIONS {
        table[number] = kept(number);
        number += 1;
    }
    table
};

/// Records a nested call that may matter: the end of a pool may end another pool.
fn note_inner(kept: &HookedFunction, all: &Arguments, caller: Caller) {
    let Some(function) = kept.inner else { return };
    let signature = Signature::of_word_untrusted(function.signature.load(Relaxed));
    if let Some(signature) = signature.filter(|signature| signature.action == InnerAction::Clear) {
        let pool = signature.pool.and_then(|place| all.get(usize::from(place))).copied().unwrap_or(0);
        note_clear(function.heap.load(Relaxed) as u8, pool, caller.of_function(signature.called));
    }
}

/// Records that all blocks of a pool are about to be freed.
#[cold]
fn note_clear(heap: u8, pool: usize, caller: Caller) {
    if pool != 0
        && let Some(mut scope) = Scope::enter(caller.sp())
    {
        let stack = stack_for(&mut scope, caller, FLAG_STACK_DESTROY);
        events::pool_cleared(&mut scope, heap, pool, stack);
    }
}

fn run(kept: &HookedFunction, all: &Arguments, caller: Caller) -> Outcome {
    let Some(function) = kept.inner else { return Outcome::PassOn };
    let Some(signature) = Signature::of_word_untrusted(function.signature.load(Relaxed)) else {
        return Outcome::PassOn;
    };
    let argument = |place: Option<u8>| all.get(usize::from(place?)).copied();
    let size = argument(signature.size).unwrap_or(signature.fixed_bytes as usize);
    let size = size.saturating_mul(argument(signature.count).unwrap_or(1));
    let size = size.saturating_add(argument(signature.more).unwrap_or(0));
    let block = argument(signature.block).unwrap_or(0);
    let caller = caller.of_function(signature.called);
    let pool = argument(signature.pool).unwrap_or(0);
    let is_pool_before = signature.pool == Some(POOL_BEFORE_BLOCK);
    let call = Call { real: kept.real, all, block, size, pool, is_pool_before, caller };
    let action = match signature.action {
        InnerAction::Any if block == 0 && size == 0 => return Outcome::PassOn,
        InnerAction::Any if block == 0 => InnerAction::Allocate,
        InnerAction::Any if size == 0 => {
            let heap = function.heap.load(Relaxed);
            return Outcome::Answered(if heap == 0 { call.free() } else { call.free_in(heap as u8) });
        }
        InnerAction::Any => InnerAction::Reallocate,
        InnerAction::Quiet => return Outcome::Answered(call.quietly()),
        InnerAction::Clear => return Outcome::Answered(call.clear(function.heap.load(Relaxed) as u8)),
        InnerAction::Dissolve => {
            arenas::before_delete(kept.real, &[pool, 0, 0, 0], caller);
            return Outcome::PassOn;
        }
        InnerAction::Control => {
            arenas::before_control(kept.real, all, caller);
            return Outcome::PassOn;
        }
        InnerAction::ControlByMib => {
            arenas::before_control_by_mib(kept.real, all, caller);
            return Outcome::PassOn;
        }
        InnerAction::NameToMib => {
            arenas::before_name_to_mib(kept.real, all, caller);
            return Outcome::PassOn;
        }
        InnerAction::Chain => {
            let next = argument(signature.more).unwrap_or(0);
            return Outcome::Answered(call.free_chain(function.heap.load(Relaxed) as u8, next));
        }
        action => action,
    };
    match (function.heap.load(Relaxed), action) {
        (_, InnerAction::New) => all_registers::new_named(kept, all, signature.block.is_some(), caller),
        (0, _) if pool == 0 => call.run(action),
        (0, _) => {
            let outcome = call.run(action);
            if let Outcome::Answered(new) = outcome
                && new != block
                && matches!(action, InnerAction::Allocate | InnerAction::Reallocate | InnerAction::Text)
            {
                arenas::join(new, pool, caller);
            }
            outcome
        }
        (heap, _) => call.run_in(heap as u8, action),
    }
}

/// A call in progress.
struct Call<'a> {
    real: &'a AtomicUsize,
    all: &'a Arguments,
    block: usize,
    size: usize,
    pool: usize,
    is_pool_before: bool,
    caller: Caller,
}

/// Largest number of blocks of a chain that are followed.
const CHAIN_MAX: usize = 1 << 24;

impl Call<'_> {
    fn make(&self) -> usize {
        forwarded::call(self.real, *self.all)
    }

    fn free(&self) -> usize {
        forwarded::run_free(self.real, *self.all, self.block, self.caller)
    }

    /// Records a call for the program's main heap.
    fn run(&self, action: InnerAction) -> Outcome {
        let &Self { real, all: &all, block, size, caller, .. } = self;
        Outcome::Answered(match action {
            InnerAction::Allocate | InnerAction::New if sampling::is_on() => {
                sampling::new_block_inside(size, caller, || self.make() as *mut _) as usize
            }
            InnerAction::Allocate | InnerAction::New => forwarded::run_alloc(real, all, size, caller),
            InnerAction::Reallocate | InnerAction::Any => {
                forwarded::run_realloc(real, all, block, size, caller)
            }
            InnerAction::Store => {
                let store = || self.make() as c_int;
                if sampling::is_on() {
                    sampling::stored_block_inside(block as *mut _, size, caller, store) as usize
                } else {
                    hooks::aligned_block::<true>(block as *mut _, size, caller, store) as usize
                }
            }
            InnerAction::Resize => forwarded::run_resize(real, all, size, caller, |done| done >= size),
            InnerAction::Expand => forwarded::run_resize(real, all, size, caller, |block| block != 0),
            InnerAction::Text => forwarded::run_string(real, all, caller),
            InnerAction::Free => {
                self.free();
                return Outcome::Silent;
            }
            // Handled before the heap is known; trees are handled in `tree_calls`.
            _ => return Outcome::PassOn,
        })
    }

    /// Records a call for a separate heap: see [`crate::hooks::heaps`].
    fn run_in(&self, heap: u8, action: InnerAction) -> Outcome {
        match action {
            InnerAction::Free => {
                self.free_in(heap);
                Outcome::Silent
            }
            InnerAction::Reallocate if self.block != 0 => Outcome::Answered(self.reallocate_in(heap)),
            InnerAction::Allocate | InnerAction::Reallocate => Outcome::Answered(self.allocate_in(heap)),
            _ => Outcome::PassOn,
        }
    }

    fn allocate_in(&self, heap: u8) -> usize {
        let caller = self.caller;
        let Some(begun) = inner_calls::begin(caller.entry()) else { return self.make() };
        let block = self.make();
        inner_calls::end(begun);
        let pool = if self.is_pool_before && block != 0 {
            // SAFETY: the table says that the function has stored its pool's address there.
            unsafe { (block.wrapping_sub(size_of::<usize>()) as *const usize).read_unaligned() }
        } else {
            self.pool
        };
        note_block(heap, block, self.size, pool, caller);
        block
    }

    /// Makes the call without recording it; calls that it makes in turn are not the program's.
    fn quietly(&self) -> usize {
        let Some(begun) = inner_calls::begin(self.caller.entry()) else { return self.make() };
        let answer = self.make();
        inner_calls::end(begun);
        answer
    }

    fn clear(&self, heap: u8) -> usize {
        note_clear(heap, self.pool, self.caller);
        self.quietly()
    }

    /// Records a chain of blocks that is about to be freed.
    #[cold]
    fn free_chain(&self, heap: u8, next: usize) -> usize {
        let Some(begun) = inner_calls::begin(self.caller.entry()) else { return self.make() };
        if let Some(mut scope) = Scope::enter(self.caller.sp()) {
            let mut block = self.block;
            for _ in 0..CHAIN_MAX {
                if block == 0 {
                    break;
                }
                events::free(&mut scope, heap, block);
                // SAFETY: the function is about to read the same word. Its caller has promised that
                // each block of the chain has the address of the next one there, or null.
                block = unsafe { (block.wrapping_add(next) as *const usize).read_unaligned() };
            }
        }
        let answer = self.make();
        inner_calls::end(begun);
        answer
    }

    fn free_in(&self, heap: u8) -> usize {
        let Some(begun) = inner_calls::begin(self.caller.entry()) else { return self.make() };
        note_free(heap, self.block, self.caller);
        let answer = self.make();
        inner_calls::end(begun);
        answer
    }

    fn reallocate_in(&self, heap: u8) -> usize {
        let &Self { block, size, caller, .. } = self;
        let Some(begun) = inner_calls::begin(caller.entry()) else { return self.make() };
        let is_prepared = Scope::enter(caller.sp())
            .is_some_and(|mut scope| events::realloc_prepare(&mut scope, heap, block));
        let new = self.make();
        inner_calls::end(begun);
        if is_prepared && let Some(mut scope) = Scope::enter(caller.sp()) {
            if new == 0 {
                events::realloc_abort(&mut scope, heap, block, size);
            } else {
                let stack = stack_for(&mut scope, caller, FLAG_STACK_REALLOC);
                events::realloc_commit(&mut scope, heap, new, size, stack);
            }
        }
        new
    }
}
