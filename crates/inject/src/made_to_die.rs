//! For tests: this process ends as if it were killed while a thread of a target is on loan.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// How many moments of that kind are still to come; 0: it never ends so.
static LEFT: AtomicU32 = AtomicU32::new(0);
static STOPS_TARGET: AtomicBool = AtomicBool::new(false);

/// This process ends at the moment of that number. `stops_target`: the target is stopped before, so
/// that its thread is on loan until somebody lets it go on, as on a busy machine.
pub fn die_at(number: u32, stops_target: bool) {
    STOPS_TARGET.store(stops_target, Relaxed);
    LEFT.store(number, Relaxed);
}

/// Such a moment.
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
