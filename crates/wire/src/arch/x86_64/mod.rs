//! Facts about x86-64.

pub mod call_numbers;

/// Number by which seccomp filters recognise the processor's system calls (`AUDIT_ARCH_X86_64`).
pub const AUDIT_ARCHITECTURE: u32 = 0xc000_003e;
/// Sizes in bytes of a page that the kernel can be built for, ascending.
pub const PAGE_SIZES: &[usize] = &[PAGE_BYTES_MIN];
/// Smallest of [`PAGE_SIZES`].
pub const PAGE_BYTES_MIN: usize = 4096;
/// Largest of [`PAGE_SIZES`].
pub const PAGE_BYTES_MAX: usize = 4096;
