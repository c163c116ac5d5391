//! Facts about aarch64.

pub mod call_numbers;

/// Number by which seccomp filters recognise the processor's system calls (`AUDIT_ARCH_AARCH64`).
pub const AUDIT_ARCHITECTURE: u32 = 0xc000_00b7;
/// Sizes in bytes of a page that the kernel can be built for, ascending.
pub const PAGE_SIZES: &[usize] = &[PAGE_BYTES_MIN, 16 << 10, PAGE_BYTES_MAX];
/// Smallest of [`PAGE_SIZES`].
pub const PAGE_BYTES_MIN: usize = 4096;
/// Largest of [`PAGE_SIZES`].
pub const PAGE_BYTES_MAX: usize = 64 << 10;
