//! Registers beyond those that [`crate::arch::all_registers_entry`] saves, around calls of the C
//! library's functions. On aarch64 those that it saves suffice.

/// Makes [`call_keeping`] save the registers from here on, if the processor has them.
pub(crate) fn begin_keeping() {}

/// True if registers are saved, which takes room on the stack.
pub(crate) fn are_kept() -> bool {
    false
}

/// Calls `function(first, second)`.
///
/// # Safety
/// 1. The function's own conditions hold.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_keeping(_first: usize, _second: usize, _function: usize) -> usize {
    core::arch::naked_asm!(".cfi_startproc", "br x2", ".cfi_endproc");
}
