//! Locations of what the C libraries of aarch64 keep for a thread.

use core::ops::Range;

/// Size in bytes of `struct pthread` of glibc 2.36, which ends at the thread pointer. Other
/// versions have other sizes; readers verify what they find.
const DESCRIPTOR_BYTES: usize = 0x740;

/// Offset from the thread pointer at which a descriptor begins, whatever its size; the memory below
/// a smaller one is the thread's, too.
pub const DESCRIPTOR_BEGIN: usize = 0_usize.wrapping_sub(crate::glibc::DESCRIPTOR_BYTES);

/// Makes an offset from the thread pointer of an offset in `struct pthread`.
const fn before(offset: usize) -> usize {
    offset.wrapping_sub(DESCRIPTOR_BYTES)
}

/// Offset of the address of the list with the thread's blocks of thread-local variables (`dtv`).
pub const VARIABLES_LIST_AT: usize = 0;

/// Offset of the thread's id (`tid`) in `struct pthread`, from the thread pointer.
pub const THREAD_ID_OFFSET: usize = before(0xd0);

/// Offset of the values of thread keys (`specific_1stblock`). Each key has two words; the second is
/// the value.
pub const KEY_VALUES_OFFSET: usize = before(0x110);

/// Offsets at which `specific_1stblock` is looked for.
pub const KEY_VALUES_NEAR: Range<usize> = before(0xf0)..before(0x150);

/// Offsets at which a thread's stack (`stackblock`, `stackblock_size`) is looked for.
pub const STACK_BOUNDS_NEAR: Range<usize> = before(0x400)..before(0x6c0);

/// Bytes from the thread pointer up to the end of the thread's stack. There lie a head of two words
/// and the thread-local variables of the program and its libraries.
pub const STACK_END_ABOVE: Range<usize> = 16..0x10_0000;

/// Size in bytes of `struct pthread` in musl 1.2, which ends at the thread pointer.
pub const MUSL_DESCRIPTOR_BYTES: u64 = 200;

/// Size in bytes of `pthread_mutex_t` in glibc and musl.
pub const MUTEX_BYTES: u64 = 48;
