//! glibc's arenas and thread descriptors.
//!
//! Offsets in a descriptor count from the thread pointer, at which it begins on x86-64. They are in
//! bytes. Another processor needs constants of its own here.

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

/// Offsets at which a thread's stack (`stackblock`, `stackblock_size`) is looked for in `struct
/// pthread`: after the unwind buffers, before the end. The exact offset differs by version.
pub const STACK_BOUNDS_NEAR: Range<usize> = 0x600..0x8c0;

/// Bytes from the thread pointer up to the end of the thread's stack: the structure, and the room
/// that its alignment leaves.
pub const STACK_END_ABOVE: Range<usize> = 0x8c0..0x2000;

/// Size in bytes of a thread key's entry.
pub const KEY_ENTRY_BYTES: usize = 16;
/// Offset in bytes of the value in a thread key's entry.
pub const KEY_VALUE_AT: usize = 8;
