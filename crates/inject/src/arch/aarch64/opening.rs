//! First bytes of a trampoline area. No area is made on this processor, so that none is recognised.

use super::JumpBytes;

/// Size in bytes of the opening before the first code.
pub(crate) const OPENING_BYTES: usize = 16;

/// Value of the gate: calls go to the agent.
pub(crate) const GATE_OPEN: u32 = 0;
/// Value of the gate: calls wait.
pub(crate) const GATE_CLOSED: u32 = 1;
/// Value of the gate: calls go to the functions themselves.
pub(crate) const GATE_AROUND: u32 = 2;

/// Address range of the code in which threads wait: empty.
pub(crate) fn waiting_range(island_avma: u64) -> std::ops::Range<u64> {
    island_avma..island_avma
}

/// Page address of the trampoline area that code jumps to.
pub(crate) fn island_of(_entry_avma: u64, _code: &[u8]) -> Option<u64> {
    None
}

/// Target of a jump at `entry_avma`.
pub(crate) fn counting_at(entry_avma: u64, _jump: JumpBytes) -> u64 {
    entry_avma
}

/// Address of the injection record in the first bytes of an area.
pub(crate) fn record_of(_opening: &[u8; OPENING_BYTES]) -> Option<u64> {
    None
}
