//! Locations of what the C libraries of x86-64 keep for a thread.

use core::ops::Range;

/// Offset from the thread pointer at which a descriptor begins, whatever its size.
pub const DESCRIPTOR_BEGIN: usize = 0;

/// Offset of the address of the list with the thread's blocks of thread-local variables (`dtv`).
pub const VARIABLES_LIST_AT: usize = 8;

/// Offset of the thread's id (`tid`) in `struct pthread`, which begins at the thread pointer
/// (nptl/descr.h of glibc 2.31 to 2.43).
pub const THREAD_ID_OFFSET: usize = 0x2d0;

/// Offset of the values of thread keys (`specific_1stblock`) in `struct pthread` of glibc 2.2 to
/// 2.43. Each key has two words; the second is the value.
pub const KEY_VALUES_OFFSET: usize = 0x310;

/// Offsets at which `specific_1stblock` is looked for: [`KEY_VALUES_OFFSET`] with room on either
/// side for other builds.
pub const KEY_VALUES_NEAR: Range<usize> = 0x2f0..0x350;

/// Offsets at which a thread's stack (`stackblock`, `stackblock_size`) is looked for in `struct
/// pthread`: after the unwind buffers, before the end. The exact offset differs by version.
pub const STACK_BOUNDS_NEAR: Range<usize> = 0x600..0x8c0;

/// Bytes from the thread pointer up to the end of the thread's stack: the structure, and the room
/// that its alignment leaves.
pub const STACK_END_ABOVE: Range<usize> = 0x8c0..0x2000;

/// Size in bytes of `struct pthread` in musl 1.2, which begins at the thread pointer.
pub const MUSL_DESCRIPTOR_BYTES: u64 = 200;

/// Size in bytes of `pthread_mutex_t` in glibc and musl.
pub const MUTEX_BYTES: u64 = 40;
