//! Facts about the processor that agent and recorder share: one folder a processor, with the same
//! names.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
compile_error!("no folder for this processor: docs/decisions/0028-second-processor.md has what it needs");

#[cfg(test)]
mod tests {
    use super::call_numbers::*;

    #[test]
    fn the_numbers_are_the_c_librarys() {
        let numbers = [
            (CLOCK_GETTIME, libc::SYS_clock_gettime),
            (CLOSE, libc::SYS_close),
            (EXECVE, libc::SYS_execve),
            (EXECVEAT, libc::SYS_execveat),
            (FALLOCATE, libc::SYS_fallocate),
            (FCNTL, libc::SYS_fcntl),
            (FTRUNCATE, libc::SYS_ftruncate),
            (FUTEX, libc::SYS_futex),
            (GETPID, libc::SYS_getpid),
            (GETPPID, libc::SYS_getppid),
            (GETTID, libc::SYS_gettid),
            (IOCTL, libc::SYS_ioctl),
            (KILL, libc::SYS_kill),
            (MADVISE, libc::SYS_madvise),
            (MEMFD_CREATE, libc::SYS_memfd_create),
            (MLOCK2, libc::SYS_mlock2),
            (MMAP, libc::SYS_mmap),
            (MPROTECT, libc::SYS_mprotect),
            (MSYNC, libc::SYS_msync),
            (MUNLOCK, libc::SYS_munlock),
            (MUNMAP, libc::SYS_munmap),
            (OPENAT, libc::SYS_openat),
            (PRCTL, libc::SYS_prctl),
            (PREAD64, libc::SYS_pread64),
            (PRLIMIT64, libc::SYS_prlimit64),
            (PROCESS_VM_READV, libc::SYS_process_vm_readv),
            (READ, libc::SYS_read),
            (READLINKAT, libc::SYS_readlinkat),
            (RT_SIGPROCMASK, libc::SYS_rt_sigprocmask),
            (SCHED_SETSCHEDULER, libc::SYS_sched_setscheduler),
            (SECCOMP, libc::SYS_seccomp),
            (SIGALTSTACK, libc::SYS_sigaltstack),
        ];
        for (ours, theirs) in numbers {
            assert_eq!(i64::from(ours), theirs);
        }
    }
}
