//! Waiting for a buffer.
//!
//! A wait ends, whatever the shared pages contain: the recorder dies, closes the session, or gives
//! nothing back for a long time. (If the buffers' heads were overwritten, the recorder cannot tell
//! which ones to give back.) Events that are not recorded then are counted.

use core::sync::atomic::{AtomicU64, Ordering::*};

use heapr_ring::{Pool, forbidden_calls, writer};
use heapr_wire::{DisableReason, FLAG_DROP_ON_FULL};
use writer::WaitOutcome;

use crate::state::{Agent, own_stack, why_closed};

/// Nanoseconds that a process waits for one of the buffers that are left for nodes. The recorder
/// gives back full ones, and those of ended processes, within some milliseconds.
const NODES_WAIT_NS: u64 = 500_000_000;
/// Number of the recorder's checks for ended processes that the wait for nodes includes as well.
/// One check may be under way, and the next finds the ended processes. At the third their last
/// events are too new to be taken, and the fourth gives back what they held. A recorder that was
/// not scheduled has given back nothing yet.
const NODES_WAIT_LOOKS: u32 = 4;
/// Nanoseconds that events wait while the recorder gives back nothing at all, …
const EVENTS_WAIT_NS: u64 = 10_000_000_000;
/// … and number of the recorder's checks for ended processes that the wait includes as well.
const EVENTS_WAIT_LOOKS: u32 = 8;

/// Number of buffers given back (plus one) at the time when events waited in vain; 0: never. No
/// thread waits again before that number has changed.
static WAITED_IN_VAIN: AtomicU64 = AtomicU64::new(0);

fn given_back(pool: &Pool) -> u64 {
    u64::from(pool.control().freed_generation.load(Relaxed)).wrapping_add(1)
}

impl Agent {
    /// Claims a buffer, waiting if the session says so. Returns `None` if the event is lost, or the
    /// agent was disabled.
    pub(crate) fn claim_buffer(
        &self,
        pool: &Pool,
        purpose: writer::BufferUse,
        waited: &mut u64,
    ) -> Option<u32> {
        let is_for_nodes = matches!(purpose, writer::BufferUse::Nodes { .. });
        // The buffers that are left are for events, for as long as the owners of the others live. A
        // node waits for them once, and not long.
        let is_refused = || is_for_nodes && !writer::may_hold_nodes(pool);
        if is_refused() && writer::was_waited_in_vain(pool) {
            return None;
        }
        let ticks = self.now_ticks();
        if let Some(index) = writer::claim_buffer(pool, purpose, ticks) {
            return Some(index);
        }
        if pool.control().flags.load(Relaxed) & FLAG_DROP_ON_FULL != 0 || !forbidden_calls::may_wait() {
            return None;
        }
        if WAITED_IN_VAIN.load(Relaxed) == given_back(pool) {
            return None;
        }
        let given_back_before = given_back(pool);
        let looks_before = writer::ends_looked_for(pool);
        let mut try_claim = |waited_ns| {
            *waited = waited_ns;
            let ticks = self.now_ticks();
            if let Some(index) = writer::claim_buffer(pool, purpose, ticks) {
                return Some(Some(index));
            }
            let looks = writer::ends_looked_for(pool).wrapping_sub(looks_before);
            if looks >= EVENTS_WAIT_LOOKS
                && waited_ns > EVENTS_WAIT_NS
                && given_back(pool) == given_back_before
            {
                WAITED_IN_VAIN.store(given_back_before, Relaxed);
                return Some(None);
            }
            let is_in_vain = looks >= NODES_WAIT_LOOKS && waited_ns > NODES_WAIT_NS;
            let is_over = is_in_vain || writer::was_waited_in_vain(pool);
            if !is_over || !is_refused() {
                return None;
            }
            if is_in_vain {
                writer::note_waited_in_vain(pool);
            }
            Some(None)
        };
        match own_stack::leave(|| writer::wait_for(pool, &mut try_claim)) {
            Ok(claimed) => claimed,
            Err(WaitOutcome::Dead) => {
                self.disable(DisableReason::RecorderDied);
                None
            }
            Err(_) => {
                self.disable(why_closed(pool));
                None
            }
        }
    }
}
