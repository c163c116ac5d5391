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

/// Alignment of `struct pthread` in bytes, which begins at the thread pointer (`TCB_ALIGNMENT`).
pub const DESCRIPTOR_ALIGNMENT: usize = 64;

/// Offset of the second word of `struct pthread` that holds its own address (`self`); the first one
/// (`tcb`) is at 0.
pub const SELF_OFFSET: usize = 16;

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

/// Finds a thread's descriptor in bytes of a process that begin at `start_avma`: two words of it
/// are its own address. Returns its address.
#[must_use]
pub fn find_descriptor(start_avma: u64, bytes: &[u8]) -> Option<u64> {
    let first = start_avma.checked_next_multiple_of(DESCRIPTOR_ALIGNMENT as u64)?;
    let skipped = usize::try_from(first - start_avma).ok()?;
    let words = bytes.get(skipped..)?.as_chunks::<8>().0;
    let places = (0..words.len().saturating_sub(SELF_OFFSET / 8)).step_by(DESCRIPTOR_ALIGNMENT / 8);
    let found = places.into_iter().find(|&at| {
        let own_avma = (first + 8 * at as u64).to_le_bytes();
        words[at] == own_avma && words[at + SELF_OFFSET / 8] == own_avma
    })?;
    Some(first + 8 * found as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_found_by_its_own_address_at_its_alignment() {
        let start_avma = 0x7000_0008;
        let mut bytes = [0; 512];
        let mut put = |avma: u64, value: u64| {
            let at = (avma - start_avma) as usize;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        // An address in the middle of the alignment is no descriptor.
        put(0x7000_0050, 0x7000_0050);
        put(0x7000_0060, 0x7000_0050);
        put(0x7000_0080, 0x7000_0080);
        put(0x7000_0100, 0x7000_0100);
        put(0x7000_0110, 0x7000_0100);
        assert_eq!(find_descriptor(start_avma, &bytes), Some(0x7000_0100));
        assert_eq!(find_descriptor(start_avma, &bytes[..0x100]), None);
        assert_eq!(find_descriptor(start_avma, &[]), None);
    }

    #[test]
    fn files_of_all_versions_are_told_from_others() {
        assert!(["libc.so.6", "libc-2.31.so"].into_iter().all(is_library));
        assert!(!["libc.so", "libc-2.31.py", "libcurl.so.4"].into_iter().any(is_library));
        assert!(["ld.so", "ld-linux-any.so.2", "ld-2.31.so"].into_iter().all(is_loader));
        assert!(!["ld", "ld-musl-any.so.1", "libld-linux.so"].into_iter().any(is_loader));
    }
}
