//! Sampling: records some allocations to represent all. Its entry points count a call's bytes down
//! and jump on to the allocator.
//!
//! ```text
//! malloc  --> counted down --> the real malloc              nearly always: nothing comes back
//!                         \--> real malloc, stack, record   a sample
//! free    --> page marked? --> the real free                nearly always
//!                         \--> record --> the real free     a sample, or one near it
//! ```
//! A sample's page is marked until the recorder has seen its free: [`crate::state::page_marks`]. A
//! decision before the real call is final: a call that fails, or an allocator's nested call, is no
//! sample.
//!
//! In a process that was attached to, the injector's code counts, and checks the page, before a
//! call comes here. That includes nested calls of the allocator, which are recognised by their
//! return address.
//!
//! Allocators that call their own functions, and embedded allocators, come through the ordinary
//! hooks, which call [`allocated`] and the functions beside it.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

use heapr_wire::{DisableReason, FLAG_SAMPLED, FLAG_STACK_ALLOC, HEAP_MALLOC, SAMPLE_ALL, called};

use crate::arch::entry::Entry;
use crate::arch::{thread_pointer, usdt};
use crate::hooks::around::{
    self, note_resize_without_block, stack_after_resize, stack_before_resize, stored_block,
};
use crate::hooks::real::REAL;
use crate::hooks::{self, Caller, NO_STACK, Pointer, inner_calls, inside, outermost, stack_for};
use crate::record::countdown::{self, Draw};
use crate::record::events;
use crate::record::thread::Scope;
use crate::state::AGENT;
use crate::state::page_marks::{self, Freed};

/// 1: the session may sample, whether it does at this moment or not.
static IS_ON: AtomicU32 = AtomicU32::new(0);
/// Mean, in bytes, for which the entry points were last chosen.
static MEAN_BYTES: AtomicU64 = AtomicU64::new(SAMPLE_ALL);

/// Offset of the countdown from the thread pointer, read by the injector; 0: the countdown lies in
/// the thread's state.
pub(crate) static COUNTDOWN_PLACE: AtomicUsize = AtomicUsize::new(0);

/// True if allocations may be samples.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed) != 0
}

/// True if only some allocations are recorded, as far as is known.
pub(crate) fn takes_some() -> bool {
    is_on() && MEAN_BYTES.load(Relaxed) != SAMPLE_ALL
}

/// Chooses the entry points, once the session is known.
#[cold]
pub(crate) fn start() {
    let is_sampled = AGENT.pool().is_some_and(|pool| pool.control().flags.load(Relaxed) & FLAG_SAMPLED != 0);
    if !is_sampled {
        return;
    }
    if !page_marks::prepare() {
        AGENT.disable(DisableReason::NoMemory);
        return;
    }
    if AGENT.is_injected.load(Relaxed) == 0 {
        let place = thread_pointer::countdown() as usize;
        COUNTDOWN_PLACE.store(place.wrapping_sub(thread_pointer::thread_pointer()), Relaxed);
    }
    IS_ON.store(1, Release);
    look();
}

/// Returns the mean that the session wants at this moment, and chooses the entry points anew if it
/// is of another kind.
#[cold]
fn look() -> u64 {
    let Some(pool) = AGENT.pool() else { return SAMPLE_ALL };
    let wanted = pool.control().sample_mean_bytes.load(Relaxed);
    let before = MEAN_BYTES.swap(wanted, Relaxed);
    if (wanted == SAMPLE_ALL) != (before == SAMPLE_ALL) {
        hooks::choose_entries(wanted != SAMPLE_ALL);
    }
    wanted
}

/// Code ranges (start and bytes) whose calls are not the program's: the agent's code, and the
/// allocator's. Filled in by an injector whose code counts all calls down.
pub(crate) static OWN_CALLS: [[AtomicUsize; 2]; heapr_wire::OWN_CALLS] =
    [const { [const { AtomicUsize::new(0) }; 2] }; heapr_wire::OWN_CALLS];

/// True if the allocator or the agent makes a call itself.
fn is_own(caller: Caller) -> bool {
    // SAFETY: at entry the stack pointer points to the return address.
    let pc = unsafe { caller.entry().return_avma() };
    OWN_CALLS.iter().any(|[start, bytes]| pc.wrapping_sub(start.load(Relaxed)) < bytes.load(Relaxed))
}

/// Decides whether a call is a sample; its countdown has run out, or it was not counted yet.
/// Returns `None` if all calls are recorded by now.
#[cold]
fn drawn(scope: &mut Scope, size: usize) -> Option<Draw> {
    let mean_bytes = look();
    page_marks::take_off();
    let state = scope.state();
    if !countdown::is_over(&mut state.countdown) {
        if mean_bytes == SAMPLE_ALL {
            return None;
        }
        if !countdown::count(&mut state.countdown, size) {
            return Some(Draw::Passed);
        }
    }
    Some(countdown::crossed(&mut state.countdown, state.thread_id, size, mean_bytes))
}

/// Decides whether a call is a sample, in a hook that has not entered a scope; see [`drawn`].
#[cold]
fn draw(size: usize, caller: Caller) -> Option<Draw> {
    match Scope::enter(caller.sp()) {
        Some(mut scope) => drawn(&mut scope, size),
        None => Some(Draw::Passed),
    }
}

/// Counts a call that was not counted yet, or with which the countdown has run out, and decides
/// whether it is a sample.
pub(crate) fn counted(caller: Caller, size: usize) -> Option<Draw> {
    let mut scope = Scope::enter(caller.sp())?;
    if MEAN_BYTES.load(Relaxed) == SAMPLE_ALL && look() == SAMPLE_ALL {
        return None;
    }
    if countdown::count(&mut scope.state().countdown, size) {
        drawn(&mut scope, size)
    } else {
        Some(Draw::Passed)
    }
}

/// Records a new block, or a failed call, for a hook other than those below.
#[cold]
pub(crate) fn allocated(block: Pointer, size: usize, caller: Caller) {
    made(counted(caller, size), block, size, caller);
}

/// Records the result of a call according to its draw.
pub(crate) fn made(draw: Option<Draw>, block: Pointer, size: usize, caller: Caller) {
    match draw {
        Some(Draw::Passed) => {}
        Some(Draw::Sample(mean_bytes)) => sampled(block, size, mean_bytes, caller),
        None => each(block, size, caller),
    }
}

/// Makes and records a call of an embedded allocator's function, which may have been counted at its
/// entry. It is drawn before the real call, because its nested calls are counted, too.
#[cold]
pub(crate) fn new_block_inside(size: usize, caller: Caller, real: impl FnOnce() -> Pointer) -> Pointer {
    around::outermost::<true, _, _>(
        caller,
        || passed(caller),
        || counted(caller, size),
        real,
        |draw, &block| made(draw, block, size, caller),
    )
}

/// Makes and records a call of an embedded allocator's function that stores the block at `answer`
/// and returns a status.
#[cold]
pub(crate) fn stored_block_inside(
    answer: *mut Pointer,
    size: usize,
    caller: Caller,
    real: impl FnOnce() -> c_int,
) -> c_int {
    let mut status = 0;
    new_block_inside(size, caller, || {
        status = real();
        stored_block(answer, status)
    });
    status
}

/// True if an embedded allocator's function makes a call while the agent handles the program's call
/// of that function. A second record of the block would end the record of the program's call.
fn is_nested(caller: Caller) -> bool {
    Scope::enter(caller.sp()).is_some_and(|mut scope| outermost::is_under_way(&mut scope, caller.sp()))
}

/// Draws the countdown anew if it has run out with a call that is not the program's.
#[cold]
pub(crate) fn passed(caller: Caller) {
    if is_on()
        && let Some(mut scope) = Scope::enter(caller.sp())
        && countdown::is_over(&mut scope.state().countdown)
    {
        let _ = drawn(&mut scope, 0);
    }
}

/// Records a block while all are recorded, and marks its page so that its free is recorded after
/// sampling resumes.
fn each(block: Pointer, size: usize, caller: Caller) {
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    let stack = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
    if block.is_null() {
        events::failed(&mut scope, size, stack);
        return;
    }
    page_marks::add_each(block as usize);
    events::alloc(scope.handle(), HEAP_MALLOC, block as usize, size, stack);
}

/// Records a sample.
#[cold]
fn sampled(block: Pointer, size: usize, mean_bytes: u64, caller: Caller) {
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    if inside::is_made_inside(&mut scope, caller) {
        return;
    }
    let stack = stack_for(&mut scope, caller, FLAG_STACK_ALLOC);
    if block.is_null() {
        events::failed(&mut scope, size, stack);
        return;
    }
    // Before the program has the block, and thus before any thread can free it.
    page_marks::add(block as usize);
    tell_probe(block as usize, size, mean_bytes);
    events::sample(&mut scope, block as usize, size, stack, mean_bytes);
}

/// Records a free of a sample, or of a block that may be one.
#[cold]
pub(crate) fn about_to_free(block: Pointer, caller: Caller) {
    let freed = page_marks::freed(block as usize);
    let is_all = MEAN_BYTES.load(Relaxed) == SAMPLE_ALL;
    if freed == Freed::NoSample && !is_all {
        return;
    }
    tell_probe_of_free(block as usize);
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    match freed {
        Freed::Candidate => events::free_of_candidate(&mut scope, block as usize),
        Freed::Sample | Freed::NoSample => events::free(&mut scope, HEAP_MALLOC, block as usize),
    }
}

/// Reports a sample to a listener from outside (USDT probe).
#[cold]
fn tell_probe(address: usize, size: usize, mean_bytes: u64) {
    if usdt::ALLOC_WATCHED.load(Relaxed) != 0 {
        let weighted_bytes = countdown::weighted_bytes(size, mean_bytes);
        // SAFETY: does nothing but return.
        unsafe { usdt::alloc(address, size, weighted_bytes) };
    }
}

/// Reports a free that may be a sample's to a listener from outside.
#[cold]
fn tell_probe_of_free(address: usize) {
    if address != 0 && usdt::FREE_WATCHED.load(Relaxed) != 0 {
        // SAFETY: does nothing but return.
        unsafe { usdt::free(address, 0, 0) };
    }
}

/// Facts of a realloc before the real call.
#[derive(Debug, Clone, Copy)]
struct Resized {
    block: Pointer,
    size: usize,
    draw: Option<Draw>,
    freed: Freed,
    /// Stack of the call, if it is read before the block moves.
    early: Option<u64>,
}

impl Resized {
    /// Unmarks the old block as a free does; if the call fails, the block is marked again.
    fn new(block: Pointer, size: usize, draw: Option<Draw>) -> Self {
        Self { block, size, draw, freed: page_marks::freed(block as usize), early: None }
    }
}

/// Makes and records a realloc for a hook other than those below; see [`hooks::reallocated`].
#[cold]
pub(crate) fn reallocated<const NESTS: bool>(
    block: Pointer,
    size: usize,
    caller: Caller,
    real: impl FnOnce() -> Pointer,
) -> Pointer {
    // Not by `outermost`: the facts would be moved about, on the program's stack.
    let mut begun = 0;
    if NESTS {
        let Some(before) = inner_calls::begin(caller.entry()) else {
            passed(caller);
            return real();
        };
        begun = before;
    }
    let mut resized = Resized::new(block, size, counted(caller, size));
    let is_prepared = prepare(&mut resized, caller);
    let new = real();
    if NESTS {
        inner_calls::end(begun);
    }
    if is_prepared {
        commit(resized, new, caller);
    }
    new
}

/// Records that a block is about to be resized, if it matters. Returns true if it was recorded.
#[cold]
fn prepare(resized: &mut Resized, caller: Caller) -> bool {
    let is_of_interest = resized.draw != Some(Draw::Passed) || resized.freed != Freed::NoSample;
    if resized.freed != Freed::NoSample {
        tell_probe_of_free(resized.block as usize);
    }
    is_of_interest
        && Scope::enter(caller.sp()).is_some_and(|mut scope| {
            if resized.draw != Some(Draw::Passed) {
                resized.early = stack_before_resize(&mut scope, caller);
            }
            events::realloc_prepare(&mut scope, HEAP_MALLOC, resized.block as usize)
        })
}

/// Records the result of a resize.
#[cold]
fn commit(resized: Resized, new: Pointer, caller: Caller) {
    let Resized { block, size, draw, freed, early } = resized;
    if new.is_null() && size != 0 && freed == Freed::Sample {
        page_marks::add(block as usize);
    }
    let Some(mut scope) = Scope::enter(caller.sp()) else { return };
    if new.is_null() {
        note_resize_without_block(&mut scope, block, size);
        return;
    }
    match draw {
        Some(Draw::Sample(mean_bytes)) if !inside::is_made_inside(&mut scope, caller) => {
            let stack = stack_after_resize(&mut scope, caller, early);
            page_marks::add(new as usize);
            tell_probe(new as usize, size, mean_bytes);
            events::resized_sample(&mut scope, new as usize, size, stack, mean_bytes);
        }
        // The result was not drawn: the old sample is reported as freed.
        Some(_) => events::realloc_commit(&mut scope, HEAP_MALLOC, 0, 0, NO_STACK),
        None => {
            let stack = stack_after_resize(&mut scope, caller, early);
            page_marks::add_each(new as usize);
            events::realloc_commit(&mut scope, HEAP_MALLOC, new as usize, size, stack);
        }
    }
}

/// Makes and records a call whose countdown has run out in assembly.
fn run_out(size: usize, caller: Caller, real: impl FnOnce() -> Pointer) -> Pointer {
    let draw = draw(size, caller);
    let block = real();
    if !is_own(caller) {
        made(draw, block, size, caller);
    }
    block
}

pub(crate) unsafe extern "C" fn malloc(size: usize, entry: Entry, bp: usize) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("malloc") });
    run_out(size, caller, || REAL.malloc(size))
}

pub(crate) unsafe extern "C" fn calloc(count: usize, size: usize, entry: Entry, bp: usize) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("calloc") });
    let Some(bytes) = count.checked_mul(size) else { return REAL.calloc(count, size) };
    run_out(bytes, caller, || REAL.calloc(count, size))
}

pub(crate) unsafe extern "C" fn aligned_alloc(
    alignment: usize,
    size: usize,
    entry: Entry,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("aligned_alloc") });
    run_out(size, caller, || REAL.aligned_alloc(alignment, size))
}

pub(crate) unsafe extern "C" fn memalign(alignment: usize, size: usize, entry: Entry, bp: usize) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("memalign") });
    run_out(size, caller, || REAL.memalign(alignment, size))
}

pub(crate) unsafe extern "C" fn posix_memalign(
    answer: *mut Pointer,
    alignment: usize,
    size: usize,
    entry: Entry,
    bp: usize,
) -> c_int {
    let caller = Caller::new(entry, bp, const { called("posix_memalign") });
    let mut status = 0;
    run_out(size, caller, || {
        status = REAL.posix_memalign(answer, alignment, size);
        stored_block(answer, status)
    });
    status
}

/// Entry of a realloc whose block's page is marked; the call was not counted yet.
pub(crate) unsafe extern "C" fn realloc_of_candidate(
    block: Pointer,
    size: usize,
    entry: Entry,
    bp: usize,
) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("realloc") });
    if block.is_null() {
        let new = REAL.realloc(block, size);
        allocated(new, size, caller);
        return new;
    }
    if is_nested(caller) {
        return REAL.realloc(block, size);
    }
    reallocated::<false>(block, size, caller, || REAL.realloc(block, size))
}

/// Entry of a realloc whose countdown has run out.
pub(crate) unsafe extern "C" fn realloc(block: Pointer, size: usize, entry: Entry, bp: usize) -> Pointer {
    let caller = Caller::new(entry, bp, const { called("realloc") });
    if block.is_null() {
        return run_out(size, caller, || REAL.realloc(block, size));
    }
    let draw = draw(size, caller);
    if is_own(caller) || is_nested(caller) {
        return REAL.realloc(block, size);
    }
    let mut resized = Resized::new(block, size, draw);
    let is_prepared = prepare(&mut resized, caller);
    let new = REAL.realloc(block, size);
    if is_prepared {
        commit(resized, new, caller);
    }
    new
}

/// Entry of a free of a block whose page is marked.
pub(crate) unsafe extern "C" fn free(block: Pointer, entry: Entry, bp: usize) {
    if block.is_null() {
        return;
    }
    let caller = Caller::new(entry, bp, const { called("free") });
    if !is_own(caller) {
        about_to_free(block, caller);
    }
    REAL.free(block);
}

/// Makes the thread of a forked child draw anew, so that child and parent do not take the same
/// samples.
pub(crate) fn begin_child() {
    let marker = 0_usize;
    if is_on()
        && let Some(mut scope) = Scope::enter((&raw const marker) as usize)
    {
        countdown::begin_anew(&mut scope.state().countdown);
    }
}
