//! Kept frames of a language against a whole reading, as often as the session says
//! (`HEAPR_VERIFY`).

use core::sync::atomic::Ordering::Relaxed;

use crate::record::thread::Scope;
use crate::stack;
use crate::state::AGENT;

/// Whether the frames of this event are to be compared.
#[inline(always)]
pub(crate) fn is_due(scope: &mut Scope) -> bool {
    stack::is_special() && is_due_specially(scope)
}

#[cold]
#[inline(never)]
fn is_due_specially(scope: &mut Scope) -> bool {
    let every = AGENT.pool().map_or(0, |pool| pool.control().verify_every.load(Relaxed));
    every != 0 && scope.level().kept.capture_count.is_multiple_of(every)
}

/// They were, by their hashes.
pub(crate) fn count(kept: u64, anew: u64) {
    AGENT.count(|slot| &slot.verify_count);
    if kept != anew {
        AGENT.count(|slot| &slot.verify_mismatch_count);
    }
}
