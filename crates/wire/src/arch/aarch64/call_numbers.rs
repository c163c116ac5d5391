//! Numbers of the system calls that the agent makes or checks
//! (`include/uapi/asm-generic/unistd.h`).
#![allow(missing_docs, reason = "named as the kernel names them")]

pub const FCNTL: u32 = 25;
pub const IOCTL: u32 = 29;
pub const FTRUNCATE: u32 = 46;
pub const FALLOCATE: u32 = 47;
pub const OPENAT: u32 = 56;
pub const CLOSE: u32 = 57;
pub const READ: u32 = 63;
pub const PREAD64: u32 = 67;
pub const READLINKAT: u32 = 78;
pub const FUTEX: u32 = 98;
pub const CLOCK_GETTIME: u32 = 113;
pub const SCHED_SETSCHEDULER: u32 = 119;
pub const KILL: u32 = 129;
pub const SIGALTSTACK: u32 = 132;
pub const RT_SIGPROCMASK: u32 = 135;
pub const PRCTL: u32 = 167;
pub const GETPID: u32 = 172;
pub const GETPPID: u32 = 173;
pub const GETTID: u32 = 178;
pub const MUNMAP: u32 = 215;
pub const EXECVE: u32 = 221;
pub const MMAP: u32 = 222;
pub const MPROTECT: u32 = 226;
pub const MSYNC: u32 = 227;
pub const MUNLOCK: u32 = 229;
pub const MADVISE: u32 = 233;
pub const PRLIMIT64: u32 = 261;
pub const PROCESS_VM_READV: u32 = 270;
pub const SECCOMP: u32 = 277;
pub const MEMFD_CREATE: u32 = 279;
pub const EXECVEAT: u32 = 281;
pub const MLOCK2: u32 = 284;
