//! The end of the process: where the recorder wants to look at what it leaves, it waits for that.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use heapr_ring::writer;
use heapr_wire::{FLAG_SEE_EXITS, MARK_EXIT_SEEN, MARK_EXIT_WAITS};

use crate::state::AGENT;

/// Waits until the recorder has looked, or is gone. Runs in the thread that ends the process; no
/// lock is held.
pub(crate) extern "C" fn wait_to_be_seen() {
    let Some(pool) = AGENT.pool().filter(|_| AGENT.is_active()) else { return };
    if pool.control().flags.load(Relaxed) & FLAG_SEE_EXITS == 0 {
        return;
    }
    let Some(slot) = AGENT.slot() else { return };
    // Release: what the process has written before is written when the mark is seen.
    slot.exit_marks.fetch_or(MARK_EXIT_WAITS, Release);
    // Whatever comes of it, the process ends.
    let _ = writer::wait_for(pool, |_| (slot.exit_marks.load(Acquire) & MARK_EXIT_SEEN != 0).then_some(()));
}
