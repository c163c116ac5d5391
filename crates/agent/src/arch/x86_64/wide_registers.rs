//! Saves the registers of AVX and AVX-512 around calls of the C library's functions, which may use
//! them. In calls through [`crate::arch::all_registers_entry`] these registers belong to the
//! program.

use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// [`KEEPING`]: no registers are saved.
const KEEP_NOTHING: u8 = 0;
/// [`KEEPING`]: xsavec saves the registers in use.
const KEEP_USED: u8 = 1;
/// [`KEEPING`]: xsave saves all registers.
const KEEP_ALL: u8 = 2;
pub(crate) static KEEPING: AtomicU8 = AtomicU8::new(KEEP_NOTHING);

/// Makes [`call_keeping`] save the registers from here on, if the processor has them.
pub(crate) fn begin_keeping() {
    const OSXSAVE_AND_AVX: u32 = 1 << 27 | 1 << 28;
    const XSAVEC: u32 = 1 << 1;
    let has = |register: u32, bits: u32| register & bits == bits;
    let keeping = match (has(__cpuid(1).ecx, OSXSAVE_AND_AVX), has(__cpuid_count(0xd, 1).eax, XSAVEC)) {
        (false, _) => KEEP_NOTHING,
        (true, true) => KEEP_USED,
        (true, false) => KEEP_ALL,
    };
    KEEPING.store(keeping, Relaxed);
}

/// True if the registers are saved: this takes 2.8 KiB of the stack.
pub(crate) fn are_kept() -> bool {
    KEEPING.load(Relaxed) != KEEP_NOTHING
}

/// Calls `function(first, second)`, and saves and restores the registers around it.
///
/// # Safety
/// 1. The function's own conditions hold.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_keeping(_first: usize, _second: usize, _function: usize) -> usize {
    core::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa rsp, 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa rbp, 16",
        "mov r8, rdx",
        "and rsp, -64",
        "cmp byte ptr [rip + {keeping}], {used}",
        "jb 4f",
        // Size of the largest area without AMX, which need not be saved; the area's head is
        // cleared.
        "sub rsp, 2752",
        "xor eax, eax",
        ".irp n, 512, 520, 528, 536, 544, 552, 560, 568",
        "mov [rsp + \\n], rax",
        ".endr",
        "xor edx, edx",
        "mov eax, 0xe4",
        "cmp byte ptr [rip + {keeping}], {used}",
        "je 2f",
        "xsave [rsp]",
        "jmp 3f",
        "2:",
        "xsavec [rsp]",
        "3:",
        "call r8",
        "mov rcx, rax",
        "xor edx, edx",
        "mov eax, 0xe4",
        // xrstor may restore the floating-point flags, too: their present value is preserved.
        "stmxcsr [rsp + 24]",
        "xrstor [rsp]",
        "mov rax, rcx",
        "jmp 5f",
        "4:",
        "call r8",
        "5:",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        keeping = sym KEEPING,
        used = const KEEP_USED,
    );
}
