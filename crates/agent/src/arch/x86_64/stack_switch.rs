//! Calls a function on another stack.

/// Calls `function(data)` with the stack that ends at `top`, which is aligned to 16.
///
/// It makes a frame with frame pointer, so unwinding from there continues at the caller. Shadow
/// stacks are not affected: each call returns in turn.
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
        "push rbp",
        ".cfi_def_cfa rsp, 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa rbp, 16",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
    );
}

/// Returns the stack pointer, of a function that is not inlined.
#[inline(always)]
pub(crate) fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
    pointer
}
