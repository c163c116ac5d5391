//! Instructions that are searched in the target's C library, so that a borrowed thread needs no
//! other code for a system call.

/// Code of `svc 0; ret`.
pub(crate) const SYSTEM_CALL_CODE: &[u8] = &[0x01, 0x00, 0x00, 0xd4, 0xc0, 0x03, 0x5f, 0xd6];
/// Code of `mov x8, 139; svc 0`, which returns by a signal frame.
pub(crate) const SIGRETURN_CODE: &[u8] = &[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// Whether signal handlers may return to the kernel's code, not to the C library's.
pub(crate) const IS_SIGRETURN_KERNELS: bool = true;
