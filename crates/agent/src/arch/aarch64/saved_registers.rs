//! The registers that a function preserves, as its caller will have them.

use super::columns::{FRAME_POINTER, RETURN_ADDRESS, STACK_POINTER};

/// Columns of the registers, in the order in which [`save_registers`] stores them: x19 to x28, x29,
/// the stack pointer, and the return address.
pub(crate) const COLUMNS: [usize; 13] =
    [19, 20, 21, 22, 23, 24, 25, 26, 27, 28, FRAME_POINTER, STACK_POINTER, RETURN_ADDRESS];

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
        "stp x19, x20, [x0]",
        "stp x21, x22, [x0, 16]",
        "stp x23, x24, [x0, 32]",
        "stp x25, x26, [x0, 48]",
        "stp x27, x28, [x0, 64]",
        "mov x1, sp",
        "stp x29, x1, [x0, 80]",
        "str x30, [x0, 96]",
        "ret",
        ".cfi_endproc",
    );
}
