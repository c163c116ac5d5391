//! Threads that still free, or allocate, when their last destructor has run: the C library itself
//! frees what it kept for a thread (the text of `strerror`), and libraries' destructors come in
//! several rounds.
//!
//! Nothing tells the end of what they do. So such a thread gets no state of its own: it takes one
//! for each event, which is free again when the event is written. The thread's slot stays empty, so
//! that nothing is left behind in a stack that the C library keeps for its next thread.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

use crate::frames::control_block::Identity;
use crate::record::thread_state::ThreadState;
use crate::record::thread_states;
use crate::x86_64::thread_pointer;

/// Threads that are remembered. One that another has taken the place of registers anew, and its
/// state is taken back when it is found to have ended.
const REMEMBERED: usize = 1024;

/// Thread id (upper half) and thread pointer of threads whose last destructor has run.
static ENDED: [AtomicU64; REMEMBERED] = [const { AtomicU64::new(0) }; REMEMBERED];

/// States of which each is taken for one event.
static STATES: AtomicPtr<ThreadState> = AtomicPtr::new(core::ptr::null_mut());

fn place_and_word(thread_id: u32) -> (&'static AtomicU64, u64) {
    let control_block = thread_pointer::thread_pointer() as u64;
    // Control blocks lie at the same place of stacks whose sizes are powers of two.
    let hash = (control_block >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    let place = ENDED.get(hash as usize).unwrap_or(&ENDED[0]);
    (place, u64::from(thread_id) << 32 | control_block & 0xffff_ffff)
}

/// The calling thread's last destructor has run.
pub(crate) fn note_end(thread_id: u32) {
    let (place, word) = place_and_word(thread_id);
    place.store(word, Relaxed);
}

/// Whether the calling thread's last destructor has run.
pub(crate) fn has_ended(thread_id: u32) -> bool {
    let (place, word) = place_and_word(thread_id);
    place.load(Relaxed) == word
}

/// A state for one event of the calling thread, whose depth is 1 until the event is over. `None`:
/// no memory.
#[cold]
pub(crate) fn borrow_state(identity: &Identity) -> Option<NonNull<ThreadState>> {
    let mut state = STATES.load(Acquire);
    // SAFETY: states are never unmapped. Who has set the depth is alone with it.
    while !state.is_null() && unsafe { !(*state).begin_alone() } {
        state = thread_states::next(state);
    }
    if state.is_null() {
        state = thread_states::map()?;
        // SAFETY: a fresh one, which nobody else knows.
        unsafe { (*state).begin_alone() };
        thread_states::push(&STATES, state);
    }
    // SAFETY: as above.
    let borrowed = unsafe { &mut *state };
    let is_last_ones = borrowed.thread_id == identity.thread_id
        && borrowed.control_block == thread_pointer::thread_pointer();
    if !is_last_ones {
        borrowed.forget_owner();
        borrowed.make_ready(identity);
        borrowed.countdown.begin();
        borrowed.closes_buffers = true;
    }
    NonNull::new(state)
}
