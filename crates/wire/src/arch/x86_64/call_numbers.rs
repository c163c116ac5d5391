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
