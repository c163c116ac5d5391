//! Calls a function on another stack.

/// Calls `function(data)` with the stack that ends at `top`, which is aligned to 16.
///
/// It makes a frame with frame pointer, so unwinding from there continues at the caller.
///
/// # Safety
/// 1. Below `top` lies enough memory for the function, which no other code uses during the call.
/// 2. The function may be called with `data`, and returns.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_on(
    _top: usize,
    _function: unsafe extern "C" fn(*mut ()),
    _data: *mut (),
) {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "stp x29, x30, [sp, -16]!",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset 29, -16",
        ".cfi_offset 30, -8",
        "mov x29, sp",
        ".cfi_def_cfa 29, 16",
        "mov sp, x0",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29",
        ".cfi_def_cfa 31, 16",
        "ldp x29, x30, [sp], 16",
        ".cfi_def_cfa_offset 0",
        ".cfi_restore 29",
        ".cfi_restore 30",
        "ret",
        ".cfi_endproc",
    );
}

/// Returns the stack pointer, of a function that is not inlined.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}
