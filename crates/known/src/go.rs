//! Go's heap by its addresses.

use core::ops::Range;

/// Addresses of Go's arenas up to Go 1.25 (`runtime/malloc.go`, `arenaHint`). From 1.26 on the
/// runtime begins at a random address.
pub const ARENAS_AVMA: Range<u64> = 0xc0_0000_0000..0x1c0_0000_0000;

/// Size and alignment of an arena on 64-bit Linux, in bytes (`heapArenaBytes`).
pub const ARENA_BYTES: u64 = 64 << 20;
