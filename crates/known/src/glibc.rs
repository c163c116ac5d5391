//! glibc's arenas and thread descriptors.
//!
//! Offsets in a descriptor count from the thread pointer, in bytes.

pub use crate::arch::{
    DESCRIPTOR_BEGIN, KEY_VALUES_NEAR, KEY_VALUES_OFFSET, MUTEX_BYTES, STACK_BOUNDS_NEAR, STACK_END_ABOVE,
    THREAD_ID_OFFSET, VARIABLES_LIST_AT,
};

/// Size and alignment of a heap of an arena that is not the main one, in bytes (`HEAP_MAX_SIZE` of
/// malloc/arena.c on 64-bit processors).
pub const ARENA_HEAP_BYTES: u64 = 64 << 20;

/// Upper bound in bytes of `struct pthread`'s part with the values of thread keys, in all versions.
pub const DESCRIPTOR_BYTES: usize = 0x900;

/// Number of thread keys whose values lie in the descriptor (`PTHREAD_KEY_2NDLEVEL_SIZE`).
pub const INLINE_KEYS: u32 = 32;

/// Size in bytes of a thread key's entry.
pub const KEY_ENTRY_BYTES: usize = 16;
/// Offset in bytes of the value in a thread key's entry.
pub const KEY_VALUE_AT: usize = 8;

/// Whether a file name is that of glibc's library. Before 2.34, `libc.so.6` is a link to
/// `libc-2.31.so`.
#[must_use]
pub fn is_library(file: &str) -> bool {
    file == "libc.so.6" || file.starts_with("libc-2.") && file.ends_with(".so")
}

/// Whether a file name is that of glibc's loader. Before 2.34, `ld-linux….so` is a link to
/// `ld-2.31.so`.
#[must_use]
pub fn is_loader(file: &str) -> bool {
    file == "ld.so" || file.starts_with("ld-linux") || file.starts_with("ld-2.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_all_versions_are_told_from_others() {
        assert!(["libc.so.6", "libc-2.31.so"].into_iter().all(is_library));
        assert!(!["libc.so", "libc-2.31.py", "libcurl.so.4"].into_iter().any(is_library));
        assert!(["ld.so", "ld-linux-any.so.2", "ld-2.31.so"].into_iter().all(is_loader));
        assert!(!["ld", "ld-musl-any.so.1", "libld-linux.so"].into_iter().any(is_loader));
    }
}
