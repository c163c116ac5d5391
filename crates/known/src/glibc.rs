//! glibc's arenas and thread descriptors.

use core::ops::Range;

/// Size and alignment of a heap of an arena that is not the main one, in bytes (`HEAP_MAX_SIZE` of
/// malloc/arena.c on 64-bit processors).
pub const ARENA_HEAP_BYTES: u64 = 64 << 20;

/// Offset of the thread's id (`tid`) in `struct pthread`, which begins at the thread pointer on
/// x86-64 (nptl/descr.h of glibc 2.31 to 2.43).
pub const THREAD_ID_OFFSET: usize = 0x2d0;

/// Offset of the values of thread keys (`specific_1stblock`) in `struct pthread` of glibc 2.2 to
/// 2.43. Each key has two words; the second is the value.
pub const KEY_VALUES_OFFSET: usize = 0x310;

/// Offsets at which `specific_1stblock` is looked for: [`KEY_VALUES_OFFSET`] with room on either
/// side for other builds.
pub const KEY_VALUES_NEAR: Range<usize> = 0x2f0..0x350;

/// Number of thread keys whose values lie in the descriptor (`PTHREAD_KEY_2NDLEVEL_SIZE`).
pub const INLINE_KEYS: u32 = 32;
