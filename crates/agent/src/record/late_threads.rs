//! Threads that still free, or allocate, after their last destructor has run. The C library itself
//! frees what it holds for a thread (the text of `strerror`), and libraries' destructors run in
//! several rounds.
//!
//! The end of such a thread's activity cannot be observed, so it gets no state of its own. It
//! borrows one for each event, which is free again when the event is written. The thread's slot
//! stays empty, so that no pointer remains in a stack that the C library reuses for its next
//! thread.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};

use crate::arch::thread_pointer;
use crate::frames::control_block::Identity;
use crate::record::thread_state::ThreadState;
use crate::record::thread_states;

/// Number of threads that are remembered. A thread that another one has displaced registers anew,
/// and its state is taken back when the thread is found to have ended.
const REMEMBERED: usize = 1024;

/// Thread id (upper half) and thread pointer (lower half) of threads whose last destructor has run.
static ENDED: [AtomicU64; REMEMBERED] = [const { AtomicU64::new(0) }; REMEMBERED];

/// List of the states that are borrowed, each for one event.
static STATES: AtomicPtr<ThreadState> = AtomicPtr::new(core::ptr::null_mut());

fn place_and_word(thread_id: u32) -> (&'static AtomicU64, u64) {
    let control_block = thread_pointer::thread_pointer() as u64;
    // Control blocks lie at the same offset in stacks whose sizes are powers of two.
    let hash = (control_block >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    let place = ENDED.get(hash as usize).unwrap_or(&ENDED[0]);
    (place, u64::from(thread_id) << 32 | control_block & 0xffff_ffff)
}

/// Notes that the calling thread's last destructor has run.
pub(crate) fn note_end(thread_id: u32) {
    let (place, word) = place_and_word(thread_id);
    place.store(word, Relaxed);
}

/// True if the calling thread's last destructor has run.
pub(crate) fn has_ended(thread_id: u32) -> bool {
    let (place, word) = place_and_word(thread_id);
    place.load(Relaxed) == word
}

/// Returns a state for one event of the calling thread; its depth is 1 until the event is over.
/// Returns `None` if there is no memory.
#[cold]
pub(crate) fn borrow_state(identity: &Identity) -> Option<NonNull<ThreadState>> {
    let mut state = STATES.load(Acquire);
    // SAFETY: states are never unmapped. The thread that has set the depth has exclusive use.
    while !state.is_null() && unsafe { !(*state).begin_alone() } {
        state = thread_states::next(state);
    }
    if state.is_null() {
        state = thread_states::map()?;
        // SAFETY: a fresh state, which no other thread knows.
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
