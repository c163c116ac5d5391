//! System calls and the clock on x86-64.

use core::arch::asm;

/// Makes a system call with up to six arguments and returns the kernel's raw answer (`-errno` on
/// failure). The C library's variable `errno` is not touched.
///
/// # Safety
/// 1. The arguments must be valid for `number`. Pointers through which the kernel writes must be
///    writable for the sizes that the call implies. A call that changes the address space must not
///    remove memory under live references.
#[inline]
pub(crate) unsafe fn syscall6(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    // SAFETY: the x86-64 Linux convention: number and answer in rax, arguments in rdi rsi rdx r10
    // r8 r9, rcx and r11 clobbered. The caller guarantees (1) what the kernel does with the
    // arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}

/// Reads the time stamp counter, possibly some hundred cycles early or late relative to the
/// surrounding memory accesses.
#[inline(always)]
#[must_use]
pub fn ticks_unordered() -> u64 {
    // SAFETY: rdtsc is available on every x86-64 processor. A process that has forbidden it to
    // itself (PR_SET_TSC) would get SIGSEGV; the recorder's choice of clock must prevent that.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads the time stamp counter after all earlier loads have completed.
#[inline(always)]
#[must_use]
pub fn ticks_ordered() -> u64 {
    let mut processor = 0;
    // SAFETY: as above; rdtscp writes only its operand.
    unsafe { core::arch::x86_64::__rdtscp(&raw mut processor) }
}
