//! System calls and the clock on aarch64.

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
    // SAFETY: the aarch64 Linux convention: number in x8, arguments in x0 to x5, answer in x0; no
    // other register is changed. The caller guarantees (1) what the kernel does with the arguments.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a as isize => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    answer
}

/// Reads the virtual counter, possibly early relative to the memory accesses before it. No later
/// access is made before the reading: `isb` lets no instruction begin until it is done.
#[inline(always)]
#[must_use]
pub fn ticks_unordered() -> u64 {
    let ticks;
    // SAFETY: Linux lets programs read the counter (CNTKCTL_EL1.EL0VCTEN), or reads it for them.
    unsafe { asm!("mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags)) };
    ticks
}

/// Reads the virtual counter after all earlier loads have completed, and before all later accesses.
/// The barrier waits for the loads, and each `isb` for the instructions before it.
#[inline(always)]
#[must_use]
pub fn ticks_ordered() -> u64 {
    let ticks;
    // SAFETY: as above; the barriers change nothing.
    unsafe {
        asm!(
            "dsb ishld", "isb", "mrs {}, cntvct_el0", "isb",
            out(reg) ticks,
            options(nostack, preserves_flags)
        );
    }
    ticks
}
