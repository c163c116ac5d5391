//! The words of this process's command line as the kernel has laid them out: read without
//! allocating, where there may be no memory.

use std::ffi::c_char;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

static WORDS: AtomicPtr<*const c_char> = AtomicPtr::new(std::ptr::null_mut());
static WORD_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Takes note of the command line. Before `main`.
#[cfg(target_env = "gnu")]
pub(crate) fn note_words(count: usize, words: *const *const c_char) {
    WORD_COUNT.store(count, Relaxed);
    WORDS.store(words.cast_mut(), Relaxed);
}

/// First of the words, and their number; null where nobody has told them.
pub(crate) fn words() -> (*mut *const c_char, usize) {
    (WORDS.load(Relaxed), WORD_COUNT.load(Relaxed))
}
