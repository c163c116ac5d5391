//! Signal trampolines without unwind information: musl's, Go's.
//!
//! A handler returns to `__restore_rt`, which is two instructions in every C library. glibc
//! describes it in its unwind tables. Without a description its code is recognised, as the
//! compilers' own unwinder does it (`x86_64_fallback_frame_state` in libgcc). The kernel leaves at
//! its stack pointer:
//!
//! ```text
//! sp -> ucontext: flags, link, alternate stack   40 bytes
//!                 r8 … r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip
//! ```

/// Code of a trampoline: `mov rax, 15; syscall` (rt_sigreturn).
pub(crate) const CODE: [u8; 9] = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];

/// Whether tables of a trampoline lead past the interrupted function.
pub(crate) const TABLES_PASS_OVER: bool = false;

/// Layout of the interrupted registers that the kernel stores (`struct sigcontext` in a `struct
/// ucontext`).
pub(crate) mod ucontext {
    const FIRST_BYTES: usize = 40;

    /// Offset in bytes of the link register: calls push the return address.
    pub(crate) const LINK_AT: Option<usize> = None;

    /// Returns the offset in bytes of a register's word (DWARF's number).
    pub(crate) const fn at(register: usize) -> usize {
        let position = match register {
            8..=15 => register.wrapping_sub(8),
            5 => 8,
            4 => 9,
            6 => 10,
            3 => 11,
            1 => 12,
            0 => 13,
            2 => 14,
            7 => 15,
            _ => 16,
        };
        FIRST_BYTES.wrapping_add(position.wrapping_mul(8))
    }
}
