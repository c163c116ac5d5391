//! Addresses of a process, and the reach of branches.

/// Largest distance in bytes of a trampoline area: 128 MiB, the range of `b`, with a margin for the
/// distance between function and area.
pub(crate) const JUMP_DISTANCE: u64 = (128 << 20) - (16 << 20);
