//! Instructions that are searched in the target's C library, so that a borrowed thread needs no
//! other code for a system call.

/// Code of `syscall; ret`.
pub(crate) const SYSTEM_CALL_CODE: &[u8] = &[0x0f, 0x05, 0xc3];
/// Code of `mov rax, 15; syscall`, which returns by a signal frame.
pub(crate) const SIGRETURN_CODE: &[u8] = &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// Whether signal handlers may return to the kernel's code, not to the C library's.
pub(crate) const IS_SIGRETURN_KERNELS: bool = false;
