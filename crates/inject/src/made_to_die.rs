//! Test aid: ends this process as if it were killed while a thread of a target is borrowed.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// Number of such moments until the end; 0: never.
static LEFT: AtomicU32 = AtomicU32::new(0);
static STOPS_TARGET: AtomicBool = AtomicBool::new(false);

/// Ends this process at the `number`th moment. With `stops_target`, the target is stopped before.
/// Its thread then stays borrowed until another process resumes it, as on a busy machine.
pub fn die_at(number: u32, stops_target: bool) {
    STOPS_TARGET.store(stops_target, Relaxed);
    LEFT.store(number, Relaxed);
}

/// Marks a moment at which the process may end.
pub(crate) fn moment(pid: u32) {
    if LEFT.load(Relaxed) == 0 || LEFT.fetch_sub(1, Relaxed) != 1 {
        return;
    }
    // SAFETY: plain numbers.
    unsafe {
        if STOPS_TARGET.load(Relaxed) {
            libc::kill(pid.cast_signed(), libc::SIGSTOP);
        }
        libc::kill(libc::getpid(), libc::SIGKILL);
    }
}
