//! The states of all threads of a process, and their owners.
//!
//! ```text
//! NOBODYS --taken--> a thread's --its last destructor--> NOBODYS, on the list of free ones
//!                        |
//!                        '--the thread has ended without one--> found and taken by the next thread
//! ```
//!
//! A thread that ends without running destructors (a raw `exit`, a program that has claimed all
//! keys) does not give its state back. A thread that needs a state and finds no free one therefore
//! asks the kernel about the owners of a few states, in turn. Thus the mapped memory is bounded by
//! the number of threads that live at once.
//!
//! All of this lies in memory that a forked child finds zeroed, so the child's list ends with its
//! first member.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

use heapr_ring::sys::{self, Held};

use crate::arch::thread_pointer;
use crate::frames::control_block::Identity;
use crate::record::thread_state::{Ownership, ThreadState};
use crate::state::AGENT;

/// Flag of [`Ownership::owner`]: a thread, whose id is in the upper half, owns the state.
const IS_OWNED: u64 = 1;
/// Flag of [`Ownership::owner`]: a thread is checking whether the owner lives.
const IS_ASKED_ABOUT: u64 = 2;
/// Flag of [`Ownership::owner`]: the owner's control block contains its id for as long as it lives.
const IS_IN_BLOCK: u64 = 4;

fn owned_by(identity: &Identity) -> u64 {
    let flag = if identity.is_in_block { IS_IN_BLOCK } else { 0 };
    u64::from(identity.kernel_id) << 32 | IS_OWNED | flag
}

/// Head of the list of free states: an address, with a count in the upper 16 bits against ABA.
static FREE: AtomicU64 = AtomicU64::new(0);
/// Head of the list of all states.
static ALL: AtomicPtr<ThreadState> = AtomicPtr::new(core::ptr::null_mut());
/// The next state whose owner is checked.
static NEXT_ASKED: AtomicPtr<ThreadState> = AtomicPtr::new(core::ptr::null_mut());

const ADDRESS_BITS: u64 = (1 << 48) - 1;

/// Largest number of owners that are checked before a new state is mapped. With this, at most 1.5
/// times as many states are mapped as living threads own.
const ASKED_MAX: u32 = 4;

/// Returns a state for a thread that needs one; `None` if there is no memory.
#[cold]
pub(crate) fn take(identity: &Identity) -> Option<*mut ThreadState> {
    let owner = owned_by(identity);
    if let Some(state) = take_free() {
        // SAFETY: states are never unmapped.
        unsafe { ownership(state) }.owner.store(owner, Release);
        return Some(state);
    }
    if let Some(state) = take_abandoned(owner) {
        return Some(state);
    }
    let state = map()?;
    // SAFETY: a fresh state.
    let own = unsafe { ownership(state) };
    own.owner.store(owner, Relaxed);
    push(&ALL, state);
    Some(state)
}

/// True if no second thread has been seen at the same time as the first.
#[inline(always)]
pub(crate) fn has_one_thread() -> bool {
    let first = ALL.load(Acquire);
    !first.is_null() && next(first).is_null()
}

/// Maps a fresh state, which is on no list.
pub(crate) fn map() -> Option<*mut ThreadState> {
    Some(sys::map_anonymous(size_of::<ThreadState>(), true).ok()?.cast::<ThreadState>())
}

/// Puts a state before all others of a list from which no state is ever removed.
pub(crate) fn push(list: &AtomicPtr<ThreadState>, state: *mut ThreadState) {
    // SAFETY: states are never unmapped.
    let own = unsafe { ownership(state) };
    let mut first = list.load(Relaxed);
    loop {
        own.next.store(first, Relaxed);
        // Release: pairs with the Acquire in `next`, by which other threads walk the list.
        match list.compare_exchange(first, state, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// Returns the state after one of a list; null at the end.
pub(crate) fn next(state: *mut ThreadState) -> *mut ThreadState {
    // SAFETY: states are never unmapped.
    unsafe { ownership(state) }.next.load(Acquire)
}

/// # Safety
/// 1. `state` is a state.
unsafe fn ownership(state: *mut ThreadState) -> &'static Ownership {
    // SAFETY: (1); a state is never unmapped, and all fields are atomics.
    unsafe { &(*state).ownership }
}

fn take_free() -> Option<*mut ThreadState> {
    loop {
        let head = FREE.load(Acquire);
        let state = (head & ADDRESS_BITS) as *mut ThreadState;
        if state.is_null() {
            return None;
        }
        // SAFETY: states are never unmapped; if the head is stale, the failing exchange discards
        // the link.
        let next = unsafe { ownership(state) }.next_free.load(Relaxed) as u64;
        let tag = (head >> 48).wrapping_add(1) << 48;
        if FREE.compare_exchange(head, tag | next, AcqRel, Relaxed).is_ok() {
            return Some(state);
        }
    }
}

/// Puts a state, which its thread does not use any more, on the list of free ones.
pub(crate) fn give_back(state: *mut ThreadState) {
    // SAFETY: states are never unmapped.
    let own = unsafe { ownership(state) };
    own.owner.store(0, Release);
    loop {
        let head = FREE.load(Relaxed);
        own.next_free.store((head & ADDRESS_BITS) as usize, Relaxed);
        let tag = (head >> 48).wrapping_add(1) << 48;
        if FREE.compare_exchange(head, tag | state as u64, AcqRel, Relaxed).is_ok() {
            return;
        }
    }
}

/// Finds a state whose thread has ended without giving it back, and takes it for `owner`.
fn take_abandoned(owner: u64) -> Option<*mut ThreadState> {
    // In another pid namespace the kernel would report every owner as ended.
    let process_id = AGENT.fork_local()?.process_id.load(Relaxed);
    if process_id == 0 || sys::process_id() != process_id {
        return None;
    }
    let first = ALL.load(Acquire);
    let mut asked = 0;
    let mut state = NEXT_ASKED.load(Relaxed);
    while asked < ASKED_MAX {
        if state.is_null() {
            if first.is_null() {
                return None;
            }
            state = first;
        }
        let next = next(state);
        NEXT_ASKED.store(next, Relaxed);
        asked = asked.wrapping_add(1);
        if take_if_abandoned(state, owner) {
            return Some(state);
        }
        state = next;
    }
    None
}

fn take_if_abandoned(state: *mut ThreadState, owner: u64) -> bool {
    // SAFETY: states are never unmapped.
    let own = unsafe { ownership(state) };
    let before = own.owner.load(Relaxed);
    let is_owned = before & (IS_OWNED | IS_ASKED_ABOUT) == IS_OWNED;
    let asking = before | IS_ASKED_ABOUT;
    if !is_owned || own.owner.compare_exchange(before, asking, Acquire, Relaxed).is_err() {
        return false;
    }
    let kernel_id = (before >> 32) as u32;
    // SAFETY: written before the owner was; a state's control block changes only with its owner.
    let control_block = unsafe { (*state).control_block };
    let is_abandoned = kernel_id != 0
        && !sys::process_exists(kernel_id)
        && is_forgotten(state, control_block, before & IS_IN_BLOCK != 0);
    // An owner that has given the state back in the meantime, because it lives, has written another
    // word.
    let after = if is_abandoned { owner } else { before };
    own.owner.compare_exchange(asking, after, Release, Relaxed).is_ok() && is_abandoned
}

/// True if no thread will find in its slot the state of a thread that has ended.
///
/// A thread's stack may be reused for another thread, with all that the last one left there. Then
/// the new thread's id stands where the kernel has cleared the last one's, and it is written before
/// the new thread runs.
fn is_forgotten(state: *mut ThreadState, control_block: usize, is_id_in_block: bool) -> bool {
    let is_own = control_block == thread_pointer::thread_pointer();
    let place = thread_pointer::slot_place_of(control_block);
    let [low, high] = [state as u64 as u32, (state as u64 >> 32) as u32];
    match sys::held_at(place, low) {
        _ if is_own => true,
        Held::Differs | Held::Nothing => true,
        Held::Unknown => false,
        Held::Equal => {
            let id_place = control_block.wrapping_add(thread_pointer::THREAD_ID_OFFSET);
            let has_no_thread = || is_id_in_block && sys::held_at(id_place, 0) == Held::Equal;
            has_no_thread()
                && sys::held_at(place.wrapping_add(4), high) == Held::Equal
                // SAFETY: the slot of a thread that has ended, which holds the state's address.
                && unsafe { sys::clear(place) && sys::clear(place.wrapping_add(4)) }
                && has_no_thread()
        }
    }
}
