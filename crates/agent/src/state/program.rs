//! The program's identity: its path, its command line, and whether the session names this process
//! as a root.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*};

use heapr_ring::sys;
use heapr_wire::ModuleRecord;

/// Largest number of bytes of the program's path that are stored.
const EXECUTABLE_BYTES_MAX: usize = 1024;

/// Path of the program, read at the start: later the program may have forbidden itself the system
/// call.
static EXECUTABLE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static EXECUTABLE_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Command line of the program as it was started, each word followed by a zero byte. It is read at
/// the start, because the program may have ended before the recorder reads it.
static COMMAND: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static COMMAND_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the path of the program; empty if it is not known.
pub(crate) fn executable() -> &'static [u8] {
    kept(&EXECUTABLE, &EXECUTABLE_BYTES)
}

/// Returns the words of the program's command line, as many as a record holds; empty if the agent
/// was attached.
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

/// Stores what `read` writes into a fresh mapping of at most `bytes_max`.
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

/// Id of the process that the session variable names as a root to be recorded; 0: no process.
static NAMED_ROOT: AtomicU32 = AtomicU32::new(0);

/// Sets the process that the session names as a root.
pub(crate) fn set_named_root(process_id: u32) {
    NAMED_ROOT.store(process_id, Relaxed);
}

/// True if this process is recorded as a root, not as a child of a recorded process.
pub(crate) fn is_named_root(process_id: u32) -> bool {
    process_id != 0 && NAMED_ROOT.load(Relaxed) == process_id
}
