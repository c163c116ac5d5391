//! The states of all threads of a process, and whose they are.
//!
//! ```text
//! NOBODYS --taken--> a thread's --its last destructor--> NOBODYS, on the list of free ones
//!                        |
//!                        '--the thread has ended without one--> found and taken by the next thread
//! ```
//!
//! A thread that ends without running destructors (a raw `exit`, a program that has all keys for
//! itself) gives nothing back. So a thread that needs a state and finds none free asks the kernel
//! about the owners of a few others, in turn: what is mapped is bounded by the threads that live at
//! once.
//!
//! All of it lies in memory that a forked child finds zeroed: its list ends with its first member.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

use heapr_ring::sys::{self, Held};

use crate::frames::control_block::Identity;
use crate::record::thread_state::{Ownership, ThreadState};
use crate::state::AGENT;
use crate::x86_64::thread_pointer;

/// [`Ownership::owner`]: a thread's, whose id is in the upper half.
const IS_OWNED: u64 = 1;
/// Somebody asks whether the owner lives.
const IS_ASKED_ABOUT: u64 = 2;
/// The owner's control block has its id for as long as it lives.
const IS_IN_BLOCK: u64 = 4;

fn owned_by(identity: &Identity) -> u64 {
    let flag = if identity.is_in_block { IS_IN_BLOCK } else { 0 };
    u64::from(identity.kernel_id) << 32 | IS_OWNED | flag
}

/// Head of the list of states that are free: address, with a count in the upper 16 bits against
/// ABA.
static FREE: AtomicU64 = AtomicU64::new(0);
/// Head of the list of all.
static ALL: AtomicPtr<ThreadState> = AtomicPtr::new(core::ptr::null_mut());
/// The next one whose owner is asked about.
static NEXT_ASKED: AtomicPtr<ThreadState> = AtomicPtr::new(core::ptr::null_mut());

const ADDRESS_BITS: u64 = (1 << 48) - 1;

/// Owners that are asked about before more is mapped. With this, what is mapped is at most a half
/// more than what is owned by threads that live.
const ASKED_MAX: u32 = 4;

/// A state for a thread that has none. `None`: no memory.
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
    // SAFETY: a fresh one.
    let own = unsafe { ownership(state) };
    own.owner.store(owner, Relaxed);
    push(&ALL, state);
    Some(state)
}

/// Whether no second thread has been seen at the same time as the first.
#[inline(always)]
pub(crate) fn has_one_thread() -> bool {
    let first = ALL.load(Acquire);
    !first.is_null() && next(first).is_null()
}

/// A fresh state, on no list.
pub(crate) fn map() -> Option<*mut ThreadState> {
    Some(sys::map_anonymous(size_of::<ThreadState>(), true).ok()?.cast::<ThreadState>())
}

/// Puts a state before all others of a list that none is ever taken from.
pub(crate) fn push(list: &AtomicPtr<ThreadState>, state: *mut ThreadState) {
    // SAFETY: states are never unmapped.
    let own = unsafe { ownership(state) };
    let mut first = list.load(Relaxed);
    loop {
        own.next.store(first, Relaxed);
        // Release: pairs with the Acquire of who goes through the list.
        match list.compare_exchange(first, state, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => first = now,
        }
    }
}

/// The state behind one of a list; null: there is none.
pub(crate) fn next(state: *mut ThreadState) -> *mut ThreadState {
    // SAFETY: states are never unmapped.
    unsafe { ownership(state) }.next.load(Acquire)
}

/// # Safety
/// 1. `state` is a state.
unsafe fn ownership(state: *mut ThreadState) -> &'static Ownership {
    // SAFETY: (1), which is never unmapped; all fields are atomics.
    unsafe { &(*state).ownership }
}

fn take_free() -> Option<*mut ThreadState> {
    loop {
        let head = FREE.load(Acquire);
        let state = (head & ADDRESS_BITS) as *mut ThreadState;
        if state.is_null() {
            return None;
        }
        // SAFETY: a stale one's link is thrown away by the failing exchange.
        let next = unsafe { ownership(state) }.next_free.load(Relaxed) as u64;
        let tag = (head >> 48).wrapping_add(1) << 48;
        if FREE.compare_exchange(head, tag | next, AcqRel, Relaxed).is_ok() {
            return Some(state);
        }
    }
}

/// Gives a state back, which its thread uses no more.
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

/// The state of a thread that has ended without giving it back.
fn take_abandoned(owner: u64) -> Option<*mut ThreadState> {
    // A child in another namespace would be told that nobody lives.
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
    // An owner that has given it back meanwhile, because it lives, has written another word.
    let after = if is_abandoned { owner } else { before };
    own.owner.compare_exchange(asking, after, Release, Relaxed).is_ok() && is_abandoned
}

/// Whether no thread will find in its slot the state of one that has ended.
///
/// A thread's stack may be another's next, with all that the last one left there; then that one has
/// its id where the kernel has cleared the last one's. It is written before it runs.
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
