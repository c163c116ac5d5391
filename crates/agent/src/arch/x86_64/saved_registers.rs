//! The registers that a function preserves, as its caller will have them.

use super::columns::{FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER};

/// Columns of the registers, in the order in which [`save_registers`] stores them: rbx, rbp, rsp,
/// r12 to r15, and the return address.
pub(crate) const COLUMNS: [usize; 8] = [3, FRAME_POINTER, STACK_POINTER, 12, 13, 14, 15, RETURN_ADDRESS];

/// Values of the registers, in the order of [`COLUMNS`].
#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct SavedRegisters {
    pub(crate) words: [u64; COLUMNS.len()],
}

/// Stores the registers that the caller's frame will have when this call returns.
///
/// # Safety
/// 1. `saved` may be written.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn save_registers(saved: *mut SavedRegisters) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "mov [rdi], rbx",
        "mov [rdi + 8], rbp",
        "lea rax, [rsp + 8]",
        "mov [rdi + 16], rax",
        "mov [rdi + 24], r12",
        "mov [rdi + 32], r13",
        "mov [rdi + 40], r14",
        "mov [rdi + 48], r15",
        "mov rax, [rsp]",
        "mov [rdi + 56], rax",
        "ret",
        ".cfi_endproc",
    );
}
