//! Verifies a language's cached frames by reading the whole stack, as often as the session says
//! (`HEAPR_VERIFY`).

use core::sync::atomic::Ordering::Relaxed;

use crate::record::thread::Scope;
use crate::stack;
use crate::state::AGENT;

/// True if the frames of this event must be compared.
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

/// Counts a comparison, by the hashes of the cached frames and of those read anew.
pub(crate) fn count(kept: u64, anew: u64) {
    AGENT.count(|slot| &slot.verify_count);
    if kept != anew {
        AGENT.count(|slot| &slot.verify_mismatch_count);
    }
}
