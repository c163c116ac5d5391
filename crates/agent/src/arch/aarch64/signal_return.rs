//! Signal trampolines without unwind information: the kernel's own.
//!
//! A handler returns to `__kernel_rt_sigreturn` in the kernel's page, which is two instructions and
//! has no unwind tables from Linux 5.8 on. Its code is recognised, as the compilers' own unwinder
//! does it (`aarch64_fallback_frame_state` in libgcc). The kernel leaves at its stack pointer:
//!
//! ```text
//! sp -> siginfo                                   128 bytes
//!       ucontext: flags, link, stack, signals     176 bytes, aligned to 16
//!       fault address, x0 … x30, sp, pc
//! ```

/// Code of a trampoline: `mov x8, 139; svc 0` (rt_sigreturn).
pub(crate) const CODE: [u8; 8] = [0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// Whether tables of a trampoline lead past the interrupted function. Some kernels' tables describe
/// the frame record above the registers: its return address is the interrupted link register.
pub(crate) const TABLES_PASS_OVER: bool = true;

/// Layout of the interrupted registers that the kernel stores (`struct sigcontext` in a `struct
/// ucontext`).
pub(crate) mod ucontext {
    const FIRST_BYTES: usize = 128 + 176 + 8;

    /// Offset in bytes of the link register, x30: the return address of an interrupted function
    /// that has not stored it.
    pub(crate) const LINK_AT: Option<usize> = Some(FIRST_BYTES + 30 * 8);

    /// Returns the offset in bytes of a register's word (DWARF's number). The return address's
    /// column stands for the interrupted address, which lies behind the stack pointer.
    pub(crate) const fn at(register: usize) -> usize {
        let position = match register {
            30 => 32,
            other => other,
        };
        FIRST_BYTES.wrapping_add(position.wrapping_mul(8))
    }
}
