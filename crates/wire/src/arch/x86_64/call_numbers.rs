//! Numbers of the system calls that the agent makes or checks
//! (`arch/x86/entry/syscalls/syscall_64.tbl`).
#![allow(missing_docs, reason = "named as the kernel names them")]

pub const READ: u32 = 0;
pub const CLOSE: u32 = 3;
pub const MMAP: u32 = 9;
pub const MPROTECT: u32 = 10;
pub const MUNMAP: u32 = 11;
pub const RT_SIGPROCMASK: u32 = 14;
pub const IOCTL: u32 = 16;
pub const PREAD64: u32 = 17;
pub const MSYNC: u32 = 26;
pub const MADVISE: u32 = 28;
pub const GETPID: u32 = 39;
pub const EXECVE: u32 = 59;
pub const KILL: u32 = 62;
pub const FCNTL: u32 = 72;
pub const FTRUNCATE: u32 = 77;
pub const GETPPID: u32 = 110;
pub const SIGALTSTACK: u32 = 131;
pub const SCHED_SETSCHEDULER: u32 = 144;
pub const MUNLOCK: u32 = 150;
pub const PRCTL: u32 = 157;
pub const GETTID: u32 = 186;
pub const FUTEX: u32 = 202;
pub const CLOCK_GETTIME: u32 = 228;
pub const OPENAT: u32 = 257;
pub const READLINKAT: u32 = 267;
pub const FALLOCATE: u32 = 285;
pub const PRLIMIT64: u32 = 302;
pub const PROCESS_VM_READV: u32 = 310;
pub const SECCOMP: u32 = 317;
pub const MEMFD_CREATE: u32 = 319;
pub const EXECVEAT: u32 = 322;
pub const MLOCK2: u32 = 325;

#[cfg(test)]
mod tests {
    use super::*;

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
