//! End of the process: if the recorder wants to inspect the memory that is left, the process waits
//! for that.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_ring::writer;
use heapr_wire::{FLAG_SEE_EXITS, MARK_EXIT_SEEN, MARK_EXIT_WAITS};

use crate::state::AGENT;

/// Waits until the recorder has inspected the process, or is gone. Runs in the thread that ends the
/// process; no lock is held.
pub(crate) extern "C" fn wait_to_be_seen() {
    let Some(pool) = AGENT.pool().filter(|_| AGENT.is_active()) else { return };
    if pool.control().flags.load(Relaxed) & FLAG_SEE_EXITS == 0 {
        return;
    }
    let Some(slot) = AGENT.slot() else { return };
    // Release: all earlier stores of the process are visible when the mark is.
    slot.exit_marks.fetch_or(MARK_EXIT_WAITS, Release);
    // In any case the process ends.
    let _ = writer::wait_for(pool, |_| (slot.exit_marks.load(Acquire) & MARK_EXIT_SEEN != 0).then_some(()));
}
