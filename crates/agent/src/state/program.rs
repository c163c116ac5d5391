//! Which program this is: its path, and whether the session has named the process itself.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

use heapr_ring::sys;

/// Bytes of the program's path that are kept.
const EXECUTABLE_BYTES_MAX: usize = 1024;

/// Path of the program, read at the start: later it may have forbidden itself to ask.
static EXECUTABLE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static EXECUTABLE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Path of the program; empty if it is not known.
pub(crate) fn executable() -> &'static [u8] {
    let start = EXECUTABLE.load(Acquire);
    if start.is_null() {
        return &[];
    }
    // SAFETY: a mapping that is never unmapped and holds as many bytes, written before the pointer
    // was stored.
    unsafe { core::slice::from_raw_parts(start, EXECUTABLE_BYTES.load(Relaxed)) }
}

pub(crate) fn read_executable() {
    let Ok(memory) = sys::map_anonymous(EXECUTABLE_BYTES_MAX, false) else { return };
    // SAFETY: a fresh mapping of that size, written here only, before it is published.
    let buffer = unsafe { core::slice::from_raw_parts_mut(memory, EXECUTABLE_BYTES_MAX) };
    if let Ok(path) = sys::read_link(b"/proc/self/exe\0", buffer) {
        EXECUTABLE_BYTES.store(path.len(), Relaxed);
        // Release: pairs with the Acquire in `executable`.
        EXECUTABLE.store(memory, Release);
    }
}

/// The process that the session variable names as one to be recorded for its own sake; 0: none.
static NAMED_ROOT: AtomicU32 = AtomicU32::new(0);

/// Says so.
pub(crate) fn set_named_root(process_id: u32) {
    NAMED_ROOT.store(process_id, Relaxed);
}

/// Whether this process is recorded for its own sake, not as somebody's child.
pub(crate) fn is_named_root(process_id: u32) -> bool {
    process_id != 0 && NAMED_ROOT.load(Relaxed) == process_id
}
