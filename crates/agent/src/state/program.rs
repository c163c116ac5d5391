//! Which program this is: its path, its command line, and whether the session has named the process
//! itself.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

use heapr_ring::sys;
use heapr_wire::ModuleRecord;

/// Bytes of the program's path that are kept.
const EXECUTABLE_BYTES_MAX: usize = 1024;

/// Path of the program, read at the start: later it may have forbidden itself to ask.
static EXECUTABLE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static EXECUTABLE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Its command line as it was started, each word with a zero behind it, read at the start: the
/// recorder may look when it has ended.
static COMMAND: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static COMMAND_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Path of the program; empty if it is not known.
pub(crate) fn executable() -> &'static [u8] {
    kept(&EXECUTABLE, &EXECUTABLE_BYTES)
}

/// Words of its command line, as many as a record holds; empty of a program that was attached to.
pub(crate) fn command_line() -> &'static [u8] {
    kept(&COMMAND, &COMMAND_BYTES)
}

fn kept(start: &AtomicPtr<u8>, bytes: &AtomicUsize) -> &'static [u8] {
    let start = start.load(Acquire);
    if start.is_null() {
        return &[];
    }
    // SAFETY: a mapping that is never unmapped and holds as many bytes, written before the pointer
    // was stored.
    unsafe { core::slice::from_raw_parts(start, bytes.load(Relaxed)) }
}

/// Keeps what `read` puts into a fresh mapping of at most `bytes_max`.
fn keep(
    kept: (&AtomicPtr<u8>, &AtomicUsize),
    bytes_max: usize,
    read: impl FnOnce(&mut [u8]) -> sys::SysResult,
) {
    let Ok(memory) = sys::map_anonymous(bytes_max, false) else { return };
    // SAFETY: a fresh mapping of that size, written here only, before it is published.
    let buffer = unsafe { core::slice::from_raw_parts_mut(memory, bytes_max) };
    if let Ok(count) = read(buffer) {
        kept.1.store(count, Relaxed);
        // Release: pairs with the Acquire in `kept`.
        kept.0.store(memory, Release);
    }
}

pub(crate) fn read_executable() {
    keep((&EXECUTABLE, &EXECUTABLE_BYTES), EXECUTABLE_BYTES_MAX, |buffer| {
        sys::read_link(b"/proc/self/exe\0", buffer).map(<[u8]>::len)
    });
}

pub(crate) fn read_command_line() {
    keep((&COMMAND, &COMMAND_BYTES), ModuleRecord::COMMAND_BYTES_MAX, |buffer| {
        sys::read(&sys::open(b"/proc/self/cmdline\0", false)?, buffer)
    });
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
