//! Buffers that end before they are full.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::writer::wake_recorder;
use crate::{Pool, sys};

/// Counts a buffer that a thread gives up before it is full, and wakes the recorder at every 32nd.
///
/// In a program that starts and ends threads without pause, each thread takes a buffer. Nearly all
/// buffers would be in use before the recorder wakes by itself.
pub fn note(pool: &Pool) {
    const ENDS: u32 = 32;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if COUNT.fetch_add(1, Relaxed) % ENDS == ENDS - 1 {
        wake_recorder(pool);
    }
}

/// Drops a buffer's pages from this process's resident memory, where they would otherwise stay
/// until the process ends. The content stays for the recorder. `words`: first word of the buffer.
pub fn take_out_of_sight(pool: &Pool, words: *const u64) {
    sys::take_out_of_sight(words as usize, pool.buffer_bytes());
}
