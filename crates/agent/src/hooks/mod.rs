//! The hooks: what each entry point of the allocator does besides calling the real one.
//!
//! Order: a free is recorded before the real free, an allocation after the real allocation, a realloc as prepare and
//! commit, so that sorting by time gives the order in which any address changed hands. The real functions are called outside
//! of the agent's own scope: what they call in turn is hooked like anything else.
//!
//! errno is left as the real function left it: nothing here calls the C library.

pub(crate) mod foreign;
pub(crate) mod heaps;
pub(crate) mod injected;
pub(crate) mod kept;
pub(crate) mod mapping_hooks;
pub(crate) mod real;
pub(crate) mod registered_code;
pub(crate) mod step_aside;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use heapr_wire::{
    FLAG_STACK_ALLOC, FLAG_STACK_FREE, FLAG_STACK_REALLOC, FLAG_STACK_SPECIAL, HEAP_MALLOC, HEAP_MMAP,
};

use crate::hooks::mapping_hooks::mprotect;
use crate::hooks::real::{MMAP, MREMAP, REAL};
use crate::modules;
use crate::process::AGENT;
use crate::record::events;
use crate::record::thread::Scope;
use crate::stack;
use crate::stack::kept_stack::Start;
use crate::tree;

type Pointer = *mut c_void;

/// What the trampolines know of the hooked call: the stack pointer at entry, where the return address lies, and the
/// caller's frame pointer register.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    entry_sp: *const usize,
    bp: usize,
}

impl Caller {
    #[inline(always)]
    pub(crate) fn new(entry_sp: *const usize, bp: usize) -> Self {
        Self { entry_sp, bp }
    }

    #[inline(always)]
    pub(crate) fn sp(self) -> usize {
        self.entry_sp as usize
    }

    #[inline(always)]
    fn start(self) -> Start {
        // SAFETY: at entry the stack pointer points to the return address; that frame is still there.
        let pc = unsafe { *self.entry_sp };
        Start { pc, sp: self.sp().wrapping_add(8), bp: self.bp }
    }
}

/// The node of the caller's stack, if events of this kind carry stacks.
#[inline(always)]
pub(crate) fn stack_for(scope: &mut Scope, caller: Caller, flag: u32) -> u32 {
    let Some(pool) = AGENT.pool() else { return tree::ROOT };
    if pool.control().flags.load(Relaxed) & flag == 0 {
        return tree::ROOT;
    }
    stack::capture(scope, caller.start())
}

/// Records a new block, or a failed call.
#[inline(always)]
pub(crate) fn allocated(block: Pointer, size: usize, caller: Caller) {
    if !allocated_plainly(block, size, caller) {
        allocated_in_general(block, size, caller.entry_sp, caller.bp);
    }
}

/// Records a new block, if nothing about it is special. `false`: it was not recorded.
#[inline(always)]
fn allocated_plainly(block: Pointer, size: usize, caller: Caller) -> bool {
    let Some(mut scope) = Scope::enter_plainly(caller.sp()) else { return false };
    let Some(pool) = AGENT.pool() else { return false };
    let flags = pool.control().flags.load(Relaxed);
    if flags & (FLAG_STACK_ALLOC | FLAG_STACK_SPECIAL) != FLAG_STACK_ALLOC
        || block.is_null()
        || size > u32::MAX as usize
    {
        return false;
    }
    let node = stack::capture_plainly(&mut scope, caller.start());
    events::alloc_of_malloc(&mut scope, block as usize, size as u32, node);
    true
}

/// Records a new block, or a failed call, whatever is special about it.
#[cold]
#[inline(never)]
extern "C" fn allocated_in_general(block: Pointer, size: usize, entry_sp: *const usize, bp: usize) {
    let caller = Caller::new(entry_sp, bp);
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    let node = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
    if block.is_null() {
        events::failed(&mut scope, size, node);
    } else {
        events::alloc(scope.lend(), HEAP_MALLOC, block as usize, size, node);
    }
}

/// As [`allocated`], for an entry point whose real function may call another hooked one: a block that was recorded
/// since `before` (see [`mark`]) is not recorded again.
pub(crate) fn allocated_once(before: Mark, block: Pointer, size: usize, caller: Caller) {
    if mark_changed(before, block) {
        return;
    }
    allocated(block, size, caller);
}

/// Place in the thread's event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    sequence: u64,
    cursor: u32,
}

impl Mark {
    /// As one word: buffers count modulo 2^32.
    pub(crate) fn pack(self) -> u64 {
        self.sequence << 32 | u64::from(self.cursor)
    }

    /// Back from [`Mark::pack`]; `None` for the word that stands for no mark.
    pub(crate) fn unpack(word: u64) -> Option<Self> {
        (word != u64::MAX).then_some(Self { sequence: word >> 32, cursor: word as u32 })
    }
}

/// Where the thread's event stream stands.
pub(crate) fn mark(caller: Caller) -> Option<Mark> {
    let mut scope = Scope::enter(caller.sp())?;
    let level = scope.level();
    Some(Mark { sequence: level.sequence & 0xffff_ffff, cursor: level.cursor })
}

fn mark_changed(before: Mark, block: Pointer) -> bool {
    let here = &raw const before as usize;
    let Some(mut scope) = Scope::enter(here) else { return false };
    let level = scope.level();
    let now = Mark { sequence: level.sequence & 0xffff_ffff, cursor: level.cursor };
    now != before && level.last_address == block as usize && !block.is_null()
}

/// Records that a block is about to be freed.
#[inline(always)]
pub(crate) fn about_to_free(block: Pointer, caller: Caller) {
    if block.is_null() {
        return;
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    if scope.level().pending_free == block as usize {
        return;
    }
    let carries_stack =
        AGENT.pool().is_some_and(|pool| pool.control().flags.load(Relaxed) & FLAG_STACK_FREE != 0);
    if carries_stack {
        let node = stack::capture(&mut scope, caller.start());
        events::free_with_stack(&mut scope, HEAP_MALLOC, block as usize, node);
    } else {
        events::free(&mut scope, HEAP_MALLOC, block as usize);
    }
}

/// Records a free on behalf of an entry point whose real function may call another hooked one for the same block.
pub(crate) fn about_to_free_once(block: Pointer, caller: Caller) {
    about_to_free(block, caller);
    set_pending_free(block, caller);
}

fn set_pending_free(block: Pointer, caller: Caller) {
    if let Some(mut scope) = Scope::enter(caller.sp()) {
        scope.level().pending_free = block as usize;
    }
}

/// Ends [`about_to_free_once`].
pub(crate) fn freed(caller: Caller) {
    set_pending_free(core::ptr::null_mut(), caller);
}

pub(crate) unsafe extern "C" fn malloc(size: usize, entry_sp: *const usize, bp: usize) -> Pointer {
    let block = REAL.malloc(size);
    allocated(block, size, Caller::new(entry_sp, bp));
    block
}

pub(crate) unsafe extern "C" fn free(block: Pointer, entry_sp: *const usize, bp: usize) {
    // Both ways end in a jump, so that nearly all frees need no frame of ours, and two saved registers in place of six.
    if let Some(real) = REAL.free.known_free()
        && free_plainly(block, Caller::new(entry_sp, bp))
    {
        // SAFETY: the C library's function of this name, with what the program has called it with.
        return unsafe { real(block) };
    }
    free_in_general(block, entry_sp, bp);
}

#[cold]
#[inline(never)]
extern "C" fn free_in_general(block: Pointer, entry_sp: *const usize, bp: usize) {
    about_to_free(block, Caller::new(entry_sp, bp));
    REAL.free(block);
}

/// Records a free that is nothing special. `false`: it was not recorded.
#[inline(always)]
fn free_plainly(block: Pointer, caller: Caller) -> bool {
    if block.is_null() {
        return false;
    }
    let Some(mut scope) = Scope::enter_plainly(caller.sp()) else { return false };
    let Some(pool) = AGENT.pool() else { return false };
    if pool.control().flags.load(Relaxed) & FLAG_STACK_FREE != 0 {
        return false;
    }
    let level = scope.level();
    level.pending_free != block as usize && events::write_short(level, block as usize, [])
}

pub(crate) unsafe extern "C" fn calloc(
    count: usize,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> Pointer {
    let block = REAL.calloc(count, size);
    // A product that overflows has failed; what was asked for does not fit a number.
    allocated(block, count.saturating_mul(size), Caller::new(entry_sp, bp));
    block
}

pub(crate) unsafe extern "C" fn realloc(
    block: Pointer,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry_sp, bp);
    reallocated(block, size, caller, || REAL.realloc(block, size))
}

/// Records a realloc around `real`: see the module for the order.
#[inline(always)]
pub(crate) fn reallocated(
    block: Pointer,
    size: usize,
    caller: Caller,
    real: impl FnOnce() -> Pointer,
) -> Pointer {
    if block.is_null() {
        let new = real();
        allocated(new, size, caller);
        return new;
    }
    let is_prepared = Scope::enter(caller.sp())
        .is_some_and(|mut scope| events::realloc_prepare(&mut scope, HEAP_MALLOC, block as usize));
    let new = real();
    let Some(mut scope) = Scope::enter(caller.sp()) else { return new };
    if !is_prepared {
        // The recorder does not know the old block to be in motion: what became of it can only be lost.
        return new;
    }
    if !new.is_null() {
        let node = stack_for(&mut scope, caller, FLAG_STACK_REALLOC);
        events::realloc_commit(&mut scope, HEAP_MALLOC, new as usize, size, node);
    } else if size == 0 {
        events::realloc_commit(&mut scope, HEAP_MALLOC, 0, 0, tree::ROOT);
    } else {
        events::realloc_abort(&mut scope, HEAP_MALLOC, block as usize, size);
    }
    new
}

pub(crate) unsafe extern "C" fn reallocarray(
    block: Pointer,
    count: usize,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry_sp, bp);
    // glibc's calls realloc, which is hooked; others do the work themselves. As the product may overflow only the
    // caller's words are passed on, and our own realloc does the recording.
    let Some(bytes) = count.checked_mul(size) else {
        let new = REAL.reallocarray(block, count, size);
        if new.is_null()
            && let Some(mut scope) = Scope::enter(caller.sp())
        {
            events::failed(&mut scope, usize::MAX, tree::ROOT);
        }
        return new;
    };
    reallocated(block, bytes, caller, || REAL.realloc(block, bytes))
}

pub(crate) unsafe extern "C" fn posix_memalign(
    answer: *mut Pointer,
    alignment: usize,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> c_int {
    let status = REAL.posix_memalign(answer, alignment, size);
    // SAFETY: on success the function has stored a block through the caller's pointer.
    let block = if status == 0 { unsafe { *answer } } else { core::ptr::null_mut() };
    allocated(block, size, Caller::new(entry_sp, bp));
    status
}

macro_rules! aligned_hooks {
    ($($name:ident)*) => {$(
        pub(crate) unsafe extern "C" fn $name(
            alignment: usize,
            size: usize,
            entry_sp: *const usize,
            bp: usize,
        ) -> Pointer {
            let block = REAL.$name(alignment, size);
            allocated(block, size, Caller::new(entry_sp, bp));
            block
        }
    )*};
}

aligned_hooks! { aligned_alloc memalign }

macro_rules! page_hooks {
    ($($name:ident)*) => {$(
        pub(crate) unsafe extern "C" fn $name(size: usize, entry_sp: *const usize, bp: usize) -> Pointer {
            let block = REAL.$name(size);
            allocated(block, size, Caller::new(entry_sp, bp));
            block
        }
    )*};
}

page_hooks! { valloc pvalloc }

pub(crate) unsafe extern "C" fn cfree(block: Pointer, entry_sp: *const usize, bp: usize) {
    let caller = Caller::new(entry_sp, bp);
    about_to_free_once(block, caller);
    REAL.cfree(block);
    freed(caller);
}

pub(crate) unsafe extern "C" fn free_sized(block: Pointer, size: usize, entry_sp: *const usize, bp: usize) {
    let caller = Caller::new(entry_sp, bp);
    about_to_free_once(block, caller);
    REAL.free_sized(block, size);
    freed(caller);
}

pub(crate) unsafe extern "C" fn free_aligned_sized(
    block: Pointer,
    alignment: usize,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) {
    let caller = Caller::new(entry_sp, bp);
    about_to_free_once(block, caller);
    REAL.free_aligned_sized(block, alignment, size);
    freed(caller);
}

/// After a library was unloaded its addresses mean nothing any more.
pub(crate) unsafe extern "C" fn dlclose(handle: Pointer, entry_sp: *const usize, bp: usize) -> c_int {
    let status = REAL.dlclose(handle);
    let caller = Caller::new(entry_sp, bp);
    if let Some(mut scope) = Scope::enter(caller.sp()) {
        modules::forget_unloaded(&mut events::Records { scope: &mut scope });
    }
    status
}

pub(crate) unsafe extern "C" fn munmap(
    address: Pointer,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> c_int {
    if let Some(mut scope) = Scope::enter(Caller::new(entry_sp, bp).sp()) {
        events::unmap(&mut scope, HEAP_MMAP, address as usize, size);
    }
    REAL.munmap(address, size)
}

macro_rules! slots {
    ($($name:ident)*) => {
        /// Number of each trampoline's slot.
        #[allow(non_camel_case_types, reason = "named as the C functions")]
        #[repr(usize)]
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum SlotIndex { $($name,)* }

        /// Where each exported trampoline jumps: the hook, or the real function once recording has ended.
        pub(crate) static SLOTS: [AtomicPtr<()>; [$(SlotIndex::$name),*].len()] =
            [$(AtomicPtr::new($name as *mut ())),*];

        /// Points every trampoline at the real function.
        pub(crate) fn bypass() {
            $(
                let address = REAL.$name.address();
                // Where the program's C library lacks a function the hook stands in for it.
                if address != 0 && let Some(slot) = SLOTS.get(SlotIndex::$name as usize) {
                    slot.store(address as *mut (), Relaxed);
                }
            )*
            mapping_hooks::bypass();
        }

        /// Calls `visit` with the name of every trampoline that [`bypass`] has pointed at the real function.
        pub(crate) fn for_each_bypassed(visit: &mut dyn FnMut(&[u8])) {
            $(
                if REAL.$name.address() != 0 {
                    visit(REAL.$name.name);
                }
            )*
            for (real, names) in [(&MMAP, &[&b"mmap"[..], b"mmap64"][..]), (&MREMAP, &[b"mremap"])] {
                if real.address() != 0 {
                    names.iter().for_each(|name| visit(name));
                }
            }
        }
    };
}

slots! {
    malloc free calloc realloc reallocarray posix_memalign aligned_alloc memalign valloc pvalloc cfree free_sized
    free_aligned_sized dlclose munmap mprotect
}
