//! Targets of a function's jumps.

use crate::memory::TargetMemory;

/// True if a function may jump, directly or through others, to an address for which `_is_other` is
/// true. Always true, since no code of this processor is decoded.
pub(crate) fn may_jump_to(
    _memory: &impl TargetMemory,
    _function_avma: u64,
    _bytes: u64,
    _is_other: &dyn Fn(u64) -> bool,
) -> bool {
    true
}
