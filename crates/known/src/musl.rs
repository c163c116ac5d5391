//! musl's thread descriptors.

pub use crate::arch::MUSL_DESCRIPTOR_BYTES as DESCRIPTOR_BYTES;

/// Offset in `struct pthread` of musl 1.2 of its pointer to the values of the thread's keys.
pub const VALUES_OFFSET: u64 = 128;
