//! Buffers that end before they are full.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::writer::wake_recorder;
use crate::{Pool, sys};

/// A thread has given up a buffer that is not full. Of a program that starts and ends threads
/// without pause each takes one, and nearly all would be in use before the recorder wakes by
/// itself: so it is woken now and then.
pub fn note(pool: &Pool) {
    const ENDS: u32 = 32;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if COUNT.fetch_add(1, Relaxed) % ENDS == ENDS - 1 {
        wake_recorder(pool);
    }
}

/// Takes a buffer's pages out of this process's sight, which it would else have resident until it
/// ends: what was written stays, for the recorder. `words`: the buffer's first.
pub fn take_out_of_sight(pool: &Pool, words: *const u64) {
    sys::take_out_of_sight(words as usize, pool.buffer_bytes());
}
