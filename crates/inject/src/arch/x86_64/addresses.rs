//! Addresses of a process, and the reach of jumps.

/// Highest address in use: of the lower half with four page-table levels.
pub(crate) const HIGHEST_AVMA: u64 = 0x7fff_ffff_f000;

/// Largest distance in bytes of a trampoline area: 2 GiB, the range of a jump, with a margin for
/// the distance between function and area.
pub(crate) const JUMP_DISTANCE: u64 = (1 << 31) - (64 << 20);
