//! Frames of CPython.
//!
//! ```text
//! thread pointer -> value of the interpreter's key -> thread state -> frame -> frame -> ...
//!                                                                      | code: names, line table
//!                                                                      | instruction
//! ```
//!
//! A version whose layout is not known is left alone, and said to the recorder once. One that is
//! known is believed only when the thread state has been found to be that of the thread, and what
//! stands for code, texts and bytes to be of these types.

mod code;
pub(crate) mod frame;
pub(crate) mod kept;
pub(crate) mod layout;
mod line_table;
mod reading;
mod thread;

use core::sync::atomic::{AtomicU32, Ordering::*};

use heapr_wire::LANGUAGE_PYTHON;

use crate::languages::{readable, unknown};
use crate::modules::interpreters::PYTHON;

/// What is known of the process's CPython.
static STATE: AtomicU32 = AtomicU32::new(UNSEEN);
const UNSEEN: u32 = 0;
const FOUND: u32 = 1;
const UNKNOWN: u32 = 2;

/// Whether there is a CPython with a known layout that was not there before.
pub(crate) fn look() -> bool {
    let runtime = PYTHON.runtime.load(Acquire);
    if runtime == 0 || STATE.load(Relaxed) != UNSEEN {
        return false;
    }
    let version_avma = PYTHON.version.load(Relaxed);
    // SAFETY: a variable of the interpreter's, which it exports under this name.
    let version = (version_avma != 0).then(|| unsafe { (version_avma as *const u32).read() } >> 16);
    match layout::find(version, PYTHON.runtime_bytes.load(Relaxed)) {
        // SAFETY: a variable of the interpreter's, of so many bytes.
        Some(layout) if !unsafe { is_without_lock(runtime, PYTHON.runtime_bytes.load(Relaxed)) } => {
            layout::choose(layout);
            STATE.store(FOUND, Relaxed);
            true
        }
        _ => {
            STATE.store(UNKNOWN, Relaxed);
            unknown::note(LANGUAGE_PYTHON, version.unwrap_or(0));
            false
        }
    }
}

/// What `_PyRuntime` begins with from 3.13 on: this, the version, and whether objects are made for
/// threads without the interpreter's lock.
const COOKIE: [u8; 8] = *b"xdebugpy";
const IS_WITHOUT_LOCK_AT: usize = 16;

/// Whether a build is made for threads without the interpreter's lock: its objects begin otherwise.
///
/// # Safety
/// 1. So many bytes are readable there.
unsafe fn is_without_lock(runtime: usize, bytes: usize) -> bool {
    // SAFETY: (1), as it has more bytes.
    bytes > IS_WITHOUT_LOCK_AT.wrapping_add(8)
        && unsafe {
            (runtime as *const [u8; 8]).read() == COOKIE
                && readable::word(runtime.wrapping_add(IS_WITHOUT_LOCK_AT)) != 0
        }
}

/// It is not what it was taken for.
#[cold]
pub(crate) fn give_up() {
    let version = layout::chosen().map_or(1, |layout| layout.version);
    if STATE.swap(UNKNOWN, Relaxed) == FOUND {
        unknown::note(LANGUAGE_PYTHON, version);
    }
}

/// Whether there are frames to be read.
#[inline(always)]
pub(crate) fn is_known() -> bool {
    STATE.load(Relaxed) == FOUND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_the_lock_is_told_by_what_its_runtime_begins_with() {
        let runtime = |cookie: &[u8; 8], is_without_lock: u64| {
            [u64::from_le_bytes(*cookie), 0x030d_00f0, is_without_lock, 0]
        };
        // SAFETY: of so many bytes.
        let is_told = |runtime: [u64; 4]| unsafe { is_without_lock(runtime.as_ptr().addr(), 32) };
        assert!(is_told(runtime(&COOKIE, 1)));
        assert!(!is_told(runtime(&COOKIE, 0)));
        assert!(!is_told(runtime(b"\0\0\0\0\0\0\0\0", 1)));
    }
}
