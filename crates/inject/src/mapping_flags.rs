//! Arguments of `mmap` and `mprotect` for memory that heapr maps in a target.

/// Protection of data.
pub(crate) const PROT_READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
/// Protection of code.
pub(crate) const PROT_READ_EXECUTE: u64 = (libc::PROT_READ | libc::PROT_EXEC) as u64;
/// Private, anonymous, without reserved swap, and never replacing a mapping.
pub(crate) const MAP_FLAGS: u64 =
    (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE) as u64;
