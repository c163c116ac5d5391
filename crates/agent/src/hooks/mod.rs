//! The hooks: what each entry point of the allocator does besides calling the real one.
//!
//! Order: a free is recorded before the real free, an allocation after the real allocation, a
//! realloc as prepare and commit, so that sorting by time gives the order in which any address
//! changed hands. The real functions are called outside of the agent's own scope: what they call in
//! turn is hooked like anything else.
//!
//! errno is left as the real function left it: nothing here calls the C library.

#[macro_use]
pub(crate) mod real;

pub(crate) mod apart;
pub(crate) mod entries;
pub(crate) mod exec;
pub(crate) mod exec_lists;
pub(crate) mod foreign;
pub(crate) mod forwarded;
pub(crate) mod heaps;
pub(crate) mod injected;
pub(crate) mod inner_calls;
pub(crate) mod inner_functions;
pub(crate) mod inner_table;
pub(crate) mod inside;
pub(crate) mod kept;
pub(crate) mod kept_function;
pub(crate) mod last_facts;
pub(crate) mod locking;
pub(crate) mod look_inside;
pub(crate) mod mapping_hooks;
pub(crate) mod other_allocators;
pub(crate) mod outermost;
pub(crate) mod plain_calls;
pub(crate) mod registered_code;
pub(crate) mod sampling;
pub(crate) mod sampling_entries;
pub(crate) mod sandbox;
pub(crate) mod sanitizers;
pub(crate) mod shared;
pub(crate) mod start;
pub(crate) mod step_aside;
pub(crate) mod thread_keys;
pub(crate) mod tree_calls;

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

use heapr_wire::{
    FLAG_SAMPLED, FLAG_STACK_ALLOC, FLAG_STACK_FREE, FLAG_STACK_REALLOC, FLAG_STACK_SPECIAL, HEAP_MALLOC,
    HEAP_MMAP, PACKED_SIZE_MAX, called, stack_word,
};

use crate::frames::frame::Start;
use crate::hooks::mapping_hooks::{brk, mprotect, sbrk};
use crate::hooks::real::{MMAP, MREMAP, REAL};
use crate::languages;
use crate::modules;
use crate::record::events;
use crate::record::thread::Scope;
use crate::stack;
use crate::state::{AGENT, DISABLED, STARTING};
use crate::tree;

type Pointer = *mut c_void;

/// Starts the agent unless that was done: whatever hook is called first does so.
#[cold]
pub(crate) fn start_agent() {
    start::start();
}

/// As [`start_agent`], for the trampolines of mmap and mremap, whose slots lead here until one of
/// them has been chosen.
pub(crate) unsafe extern "C" fn start_for_mapping() {
    start_agent();
    if AGENT.state.load(Relaxed) == STARTING {
        // Called from within the start itself.
        mapping_hooks::arm(false, false);
    }
}

/// As [`start_agent`], for a trampoline.
pub(crate) unsafe extern "C" fn start_for_call() {
    start_agent();
}

/// A module has turned up: it may be an allocator, or an interpreter.
pub(crate) fn look_at_new_modules() {
    languages::look();
    foreign::start();
}

/// What is known of the hooked call: the stack pointer at entry, where the return address lies, the
/// caller's frame pointer register, and which function was called (see [`heapr_wire::CALLED`]).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    entry_sp: *const usize,
    bp: usize,
    called: u8,
}

impl Caller {
    #[inline(always)]
    pub(crate) fn new(entry_sp: *const usize, bp: usize, called: u8) -> Self {
        Self { entry_sp, bp, called }
    }

    /// The same call, of another function.
    #[inline(always)]
    pub(crate) fn of_function(self, called: u8) -> Self {
        Self { called, ..self }
    }

    pub(crate) fn entry_sp(self) -> *const usize {
        self.entry_sp
    }

    #[inline(always)]
    pub(crate) fn sp(self) -> usize {
        self.entry_sp as usize
    }

    #[inline(always)]
    fn start(self) -> Start {
        // SAFETY: at entry the stack pointer points to the return address; that frame is still
        // there.
        let pc = unsafe { *self.entry_sp };
        Start { pc, sp: self.sp().wrapping_add(8), bp: self.bp }
    }
}

/// The caller's stack, if events of this kind carry stacks: its node, and which function was
/// called.
#[inline(always)]
pub(crate) fn stack_for(scope: &mut Scope, caller: Caller, flag: u32) -> u64 {
    let Some(pool) = AGENT.pool() else { return NO_STACK };
    if pool.control().flags.load(Relaxed) & flag == 0 {
        return NO_STACK;
    }
    stack_word(node_of(scope, caller), caller.called)
}

/// The node of the caller's stack, with the frames of the program's language, if it has one.
#[inline(always)]
fn node_of(scope: &mut Scope, caller: Caller) -> u32 {
    let native = stack::capture(scope, caller.start());
    if languages::are_spoken() { languages::whole_stack(scope, caller.start(), native) } else { native }
}

/// An event without a stack.
const NO_STACK: u64 = stack_word(tree::ROOT, 0);

/// Records a new block, or a failed call.
#[inline(always)]
pub(crate) fn allocated(block: Pointer, size: usize, caller: Caller) {
    // (Nothing is as small where a language is spoken.)
    if size >= AGENT.plain_bytes_end.load(Relaxed) || !allocated_plainly::<false>(block, size, caller) {
        allocated_otherwise(block, size, caller.entry_sp, caller.bp, caller.called);
    }
}

/// What few programs do, and those in which a language is spoken always.
#[cold]
#[inline(never)]
extern "C" fn allocated_otherwise(
    block: Pointer,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
    called: u8,
) {
    let is_plain = languages::are_spoken() && size <= PACKED_SIZE_MAX;
    if !is_plain || !allocated_plainly::<true>(block, size, Caller::new(entry_sp, bp, called)) {
        allocated_in_general(block, size, entry_sp, bp, called);
    }
}

/// Must record what [`allocated_in_general`] does, if nothing is special (heapr's test `victims`).
/// `SPEAKS`: the stack may have frames of a language. `false`: it was not recorded.
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
        node = languages::whole_stack_inline(&mut scope, caller.start(), node);
    }
    events::alloc_of_malloc(&mut scope, block as usize, size as u32, stack_word(node, caller.called));
    true
}

/// Records a new block, or a failed call, whatever is special about it.
#[cold]
#[inline(never)]
extern "C" fn allocated_in_general(
    block: Pointer,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
    called: u8,
) {
    let caller = Caller::new(entry_sp, bp, called);
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

/// Calls `real` for a new block, and `record` behind it. `NESTS`: the allocator may make calls
/// itself meanwhile, and this may be one.
#[inline(always)]
pub(crate) fn new_block<const NESTS: bool>(
    caller: Caller,
    real: impl FnOnce() -> Pointer,
    record: impl FnOnce(Pointer),
) -> Pointer {
    if !NESTS {
        let block = real();
        record(block);
        return block;
    }
    let Some(begun) = inner_calls::begin(caller.entry_sp) else { return real() };
    let block = real();
    inner_calls::end(begun);
    record(block);
    block
}

/// Records that a block is about to be freed.
#[inline(always)]
fn about_to_free(block: Pointer, caller: Caller) {
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

/// As [`about_to_free`], by the short way where nothing is special.
#[inline(always)]
pub(crate) fn note_free(block: Pointer, caller: Caller) {
    if sampling::is_on() || !free_plainly(block, caller.entry_sp) {
        note_free_in_general(block, caller.entry_sp, caller.bp, caller.called);
    }
}

#[cold]
#[inline(never)]
extern "C" fn note_free_in_general(block: Pointer, entry_sp: *const usize, bp: usize, called: u8) {
    about_to_free(block, Caller::new(entry_sp, bp, called));
}

/// Records a free before `real`; `NESTS` as for [`new_block`].
#[inline(always)]
pub(crate) fn freed<const NESTS: bool, T>(block: Pointer, caller: Caller, real: impl FnOnce() -> T) -> T {
    if !NESTS {
        about_to_free(block, caller);
        return real();
    }
    let Some(begun) = inner_calls::begin(caller.entry_sp) else { return real() };
    about_to_free(block, caller);
    let answer = real();
    inner_calls::end(begun);
    answer
}

pub(crate) unsafe extern "C" fn malloc<const NESTS: bool>(
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry_sp, bp, const { called("malloc") });
    new_block::<NESTS>(caller, || REAL.malloc(size), |block| allocated(block, size, caller))
}

pub(crate) unsafe extern "C" fn free<const NESTS: bool>(block: Pointer, entry_sp: *const usize, bp: usize) {
    if NESTS {
        let caller = Caller::new(entry_sp, bp, const { called("free") });
        return freed::<true, _>(block, caller, || REAL.free(block));
    }
    // Both ways end in a jump, so that nearly all frees need no frame of ours, and two saved
    // registers in place of six.
    if let Some(real) = REAL.free.known_free()
        && free_plainly(block, entry_sp)
    {
        // SAFETY: the C library's function of this name, with what the program has called it with.
        return unsafe { real(block) };
    }
    free_in_general(block, entry_sp, bp);
}

#[cold]
#[inline(never)]
extern "C" fn free_in_general(block: Pointer, entry_sp: *const usize, bp: usize) {
    about_to_free(block, Caller::new(entry_sp, bp, const { called("free") }));
    REAL.free(block);
}

/// Must record what [`about_to_free`] does, if nothing is special (heapr's test `victims`).
/// `false`: it was not recorded.
#[inline(always)]
fn free_plainly(block: Pointer, entry_sp: *const usize) -> bool {
    if block.is_null() {
        return false;
    }
    let Some(mut scope) = Scope::enter_plainly(entry_sp as usize) else { return false };
    let Some(pool) = AGENT.pool() else { return false };
    if pool.control().flags.load(Relaxed) & FLAG_STACK_FREE != 0 {
        return false;
    }
    events::write_short(scope.level(), block as usize, [])
}

pub(crate) unsafe extern "C" fn calloc<const NESTS: bool>(
    count: usize,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry_sp, bp, const { called("calloc") });
    // A product that overflows has failed; what was asked for does not fit a number.
    let record = |block| allocated(block, count.saturating_mul(size), caller);
    new_block::<NESTS>(caller, || REAL.calloc(count, size), record)
}

pub(crate) unsafe extern "C" fn realloc<const NESTS: bool>(
    block: Pointer,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry_sp, bp, const { called("realloc") });
    reallocated::<NESTS>(block, size, caller, || REAL.realloc(block, size))
}

/// Records a realloc around `real`: see the module for the order, and [`new_block`] for `NESTS`.
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
    let mut begun = 0;
    if NESTS {
        let Some(before) = inner_calls::begin(caller.entry_sp) else { return real() };
        begun = before;
    }
    let is_prepared = Scope::enter(caller.sp())
        .is_some_and(|mut scope| events::realloc_prepare(&mut scope, HEAP_MALLOC, block as usize));
    let new = real();
    if NESTS {
        inner_calls::end(begun);
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return new };
    if !is_prepared {
        // The recorder does not know the old block to be in motion: what became of it can only be
        // lost.
        return new;
    }
    if !new.is_null() {
        scope.level().has_moved = new != block;
        let stack = stack_for(&mut scope, caller, FLAG_STACK_REALLOC);
        scope.level().has_moved = false;
        events::realloc_commit(&mut scope, HEAP_MALLOC, new as usize, size, stack);
    } else if size == 0 {
        events::realloc_commit(&mut scope, HEAP_MALLOC, 0, 0, NO_STACK);
    } else {
        events::realloc_abort(&mut scope, HEAP_MALLOC, block as usize, size);
    }
    new
}

pub(crate) unsafe extern "C" fn reallocarray<const NESTS: bool>(
    block: Pointer,
    count: usize,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry_sp, bp, const { called("reallocarray") });
    // glibc's calls realloc, which is hooked; others do the work themselves. As the product may
    // overflow only the caller's words are passed on, and our own realloc does the recording.
    let Some(bytes) = count.checked_mul(size) else {
        let new = REAL.reallocarray(block, count, size);
        if new.is_null()
            && let Some(mut scope) = Scope::enter(caller.sp())
        {
            events::failed(&mut scope, usize::MAX, NO_STACK);
        }
        return new;
    };
    reallocated::<NESTS>(block, bytes, caller, || REAL.realloc(block, bytes))
}

pub(crate) unsafe extern "C" fn posix_memalign<const NESTS: bool>(
    answer: *mut Pointer,
    alignment: usize,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) -> c_int {
    let caller = Caller::new(entry_sp, bp, const { called("posix_memalign") });
    aligned_block::<NESTS>(answer, size, caller, || REAL.posix_memalign(answer, alignment, size))
}

/// As [`new_block`], for a function that stores the block at `answer` and gives a status.
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
        // SAFETY: on success the function has stored a block through the program's pointer.
        if status == 0 { unsafe { *answer } } else { core::ptr::null_mut() }
    };
    new_block::<NESTS>(caller, block, |block| allocated(block, size, caller));
    status
}

macro_rules! aligned_hooks {
    ($($name:ident)*) => {$(
        pub(crate) unsafe extern "C" fn $name<const NESTS: bool>(
            alignment: usize,
            size: usize,
            entry_sp: *const usize,
            bp: usize,
        ) -> Pointer {
            let caller = Caller::new(entry_sp, bp, const { called(stringify!($name)) });
            new_block::<NESTS>(caller, || REAL.$name(alignment, size), |block| allocated(block, size, caller))
        }
    )*};
}

aligned_hooks! { aligned_alloc memalign }

macro_rules! page_hooks {
    ($($name:ident)*) => {$(
        pub(crate) unsafe extern "C" fn $name<const NESTS: bool>(
            size: usize,
            entry_sp: *const usize,
            bp: usize,
        ) -> Pointer {
            let caller = Caller::new(entry_sp, bp, const { called(stringify!($name)) });
            new_block::<NESTS>(caller, || REAL.$name(size), |block| allocated(block, size, caller))
        }
    )*};
}

page_hooks! { valloc pvalloc }

// The C library's own three are its `free`, and may call that by name.

pub(crate) unsafe extern "C" fn cfree<const NESTS: bool>(block: Pointer, entry_sp: *const usize, bp: usize) {
    let caller = Caller::new(entry_sp, bp, const { called("cfree") });
    freed::<NESTS, _>(block, caller, || if NESTS { REAL.cfree(block) } else { REAL.free(block) });
}

pub(crate) unsafe extern "C" fn free_sized<const NESTS: bool>(
    block: Pointer,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) {
    let caller = Caller::new(entry_sp, bp, const { called("free_sized") });
    freed::<NESTS, _>(block, caller, || if NESTS { REAL.free_sized(block, size) } else { REAL.free(block) });
}

pub(crate) unsafe extern "C" fn free_aligned_sized<const NESTS: bool>(
    block: Pointer,
    alignment: usize,
    size: usize,
    entry_sp: *const usize,
    bp: usize,
) {
    let caller = Caller::new(entry_sp, bp, const { called("free_aligned_sized") });
    freed::<NESTS, _>(block, caller, || {
        if NESTS { REAL.free_aligned_sized(block, alignment, size) } else { REAL.free(block) }
    });
}

/// After a library was unloaded its addresses mean nothing any more.
pub(crate) unsafe extern "C" fn dlclose(handle: Pointer, entry_sp: *const usize, _bp: usize) -> c_int {
    let status = REAL.dlclose(handle);
    if let Some(mut scope) = Scope::enter(entry_sp as usize) {
        modules::forget_unloaded(&mut events::Records { scope: &mut scope });
    }
    status
}

pub(crate) unsafe extern "C" fn munmap(
    address: Pointer,
    size: usize,
    entry_sp: *const usize,
    _bp: usize,
) -> c_int {
    // (What an allocator gives back inside of a recorded call is its own.)
    if look_inside::is_large(size) && Scope::enter(entry_sp as usize).is_some() {
        look_inside::before_unmapping();
    }
    if let Some(mut scope) = Scope::enter(entry_sp as usize) {
        events::unmap(&mut scope, HEAP_MMAP, address as usize, size);
    }
    languages::memory_goes();
    REAL.munmap(address, size)
}

/// Why the hooks look for inner calls.
static WATCHES: AtomicU32 = AtomicU32::new(WATCHES_NONE);
const WATCHES_NONE: u32 = 0;
/// Allocators inside of the program: of a sample it is asked when it was drawn ([`inside`]).
const WATCHES_INSIDE: u32 = 1;
/// The allocator itself calls its own functions, or others'.
const WATCHES_ALWAYS: u32 = 2;

/// Has the hooks look for calls of the allocator itself.
#[cold]
pub(crate) fn watch_inner_calls() {
    WATCHES.store(WATCHES_ALWAYS, Relaxed);
    choose_watching();
}

/// Has the hooks look for calls of allocators inside of the program.
#[cold]
pub(crate) fn watch_calls_from_inside() {
    if WATCHES.load(Relaxed) == WATCHES_NONE {
        WATCHES.store(WATCHES_INSIDE, Relaxed);
        choose_entries(sampling::takes_some());
    }
}

/// Chooses the entry points of a session that samples, or of one that records all.
#[cold]
pub(crate) fn choose_entries(is_sampling: bool) {
    match WATCHES.load(Relaxed) {
        WATCHES_NONE => choose_hooks(),
        WATCHES_INSIDE => choose_watching(),
        _ => return,
    }
    if is_sampling {
        sampling_entries::choose();
    }
    if AGENT.state.load(Relaxed) == DISABLED {
        bypass();
    }
}

macro_rules! slots {
    ($($nests:ident $words:tt $kind:ident |$a:pat_param, $b:pat_param, $c:pat_param| $what:expr;)*) => {
        /// The hooks of the allocator's functions.
        mod plain {
            crate::x86_64::entries::hook_entries! { $($nests $words super::$nests::<false>;)* }
        }

        /// Those that look whether the allocator itself has called them.
        mod watching {
            crate::x86_64::entries::hook_entries! { $($nests $words super::$nests::<true>;)* }
        }

        slots! { @all $(plain::$nests, $nests;)* dlclose, dlclose; munmap, munmap; mprotect, mprotect;
            sbrk, sbrk; brk, brk; }

        /// Has every hook of an allocator's function look whether the allocator itself has called
        /// it.
        fn choose_watching() {
            $(
                if let Some(slot) = SLOTS.get(SlotIndex::$nests as usize) {
                    slot.store(watching::$nests as *mut (), Relaxed);
                }
            )*
        }

        /// Puts the hooks back that record all.
        fn choose_hooks() {
            $(
                if let Some(slot) = SLOTS.get(SlotIndex::$nests as usize) {
                    slot.store(plain::$nests as *mut (), Relaxed);
                }
            )*
        }
    };
    (@all $($hook:expr, $name:ident;)*) => {
        /// Number of each trampoline's slot.
        #[allow(non_camel_case_types, reason = "named as the C functions")]
        #[repr(usize)]
        #[derive(Debug, Clone, Copy)]
        pub(crate) enum SlotIndex { $($name,)* }

        /// Where each exported trampoline jumps: the hook, or the real function once recording has
        /// ended.
        pub(crate) static SLOTS: [AtomicPtr<()>; [$(SlotIndex::$name),*].len()] =
            [$(AtomicPtr::new($hook as *mut ())),*];

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

        /// Calls `visit` with the name of every trampoline that [`bypass`] has pointed at the real
        /// function.
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

for_all_allocator_functions! { slots }
