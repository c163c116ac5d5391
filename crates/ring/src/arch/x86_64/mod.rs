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

/// Numbers of the system calls in use (arch/x86/entry/syscalls/syscall_64.tbl).
#[allow(missing_docs, reason = "named as the kernel names them")]
pub(crate) mod number {
    pub(crate) const READ: usize = 0;
    pub(crate) const PREAD64: usize = 17;
    pub(crate) const CLOSE: usize = 3;
    pub(crate) const MMAP: usize = 9;
    pub(crate) const MUNMAP: usize = 11;
    pub(crate) const MPROTECT: usize = 10;
    pub(crate) const IOCTL: usize = 16;
    pub(crate) const RT_SIGPROCMASK: usize = 14;
    pub(crate) const MSYNC: usize = 26;
    pub(crate) const PROCESS_VM_READV: usize = 310;
    pub(crate) const MADVISE: usize = 28;
    pub(crate) const GETPID: usize = 39;
    pub(crate) const KILL: usize = 62;
    pub(crate) const FCNTL: usize = 72;
    pub(crate) const MUNLOCK: usize = 150;
    pub(crate) const MLOCK2: usize = 325;
    pub(crate) const FALLOCATE: usize = 285;
    pub(crate) const FTRUNCATE: usize = 77;
    pub(crate) const GETPPID: usize = 110;
    pub(crate) const SIGALTSTACK: usize = 131;
    pub(crate) const SCHED_SETSCHEDULER: usize = 144;
    pub(crate) const PRCTL: usize = 157;
    pub(crate) const GETTID: usize = 186;
    pub(crate) const FUTEX: usize = 202;
    pub(crate) const CLOCK_GETTIME: usize = 228;
    pub(crate) const READLINKAT: usize = 267;
    pub(crate) const OPENAT: usize = 257;
    pub(crate) const PRLIMIT64: usize = 302;
    pub(crate) const MEMFD_CREATE: usize = 319;
}
