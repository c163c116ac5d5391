//! Command line of this process as the kernel has laid it out. It is read without allocating,
//! because memory may be unavailable.

use std::ffi::c_char;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

static WORDS: AtomicPtr<*const c_char> = AtomicPtr::new(std::ptr::null_mut());
static WORD_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Stores the command line; called before `main`.
#[cfg(target_env = "gnu")]
pub(crate) fn note_words(count: usize, words: *const *const c_char) {
    WORD_COUNT.store(count, Relaxed);
    WORDS.store(words.cast_mut(), Relaxed);
}

/// First of the words, and their number; null if they were not stored.
pub(crate) fn words() -> (*mut *const c_char, usize) {
    (WORDS.load(Relaxed), WORD_COUNT.load(Relaxed))
}
