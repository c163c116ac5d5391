//! Simulation of seccomp filters on the system calls that the agent makes: would a filter end the
//! program?
//!
//! The injector checks before it attaches to a process that has filters; the agent checks when its
//! program installs one.

mod program;

pub use self::program::Instruction;
use self::program::{CallFacts, run};
use crate::arch::{PAGE_BYTES_MAX, call_numbers as numbers};

/// A system call with its arguments, as filters see it.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Name of the system call.
    pub name: &'static str,
    /// Number of the system call.
    pub number: u32,
    /// Arguments; those that differ from call to call have example values.
    pub arguments: [u64; 6],
    /// True if the agent makes the call only while it starts.
    pub is_of_start: bool,
}

impl Call {
    /// A call that the agent may make at any time.
    #[must_use]
    pub const fn new(name: &'static str, number: u32, arguments: [u64; 6]) -> Self {
        Self { name, number, arguments, is_of_start: false }
    }

    const fn of_start(name: &'static str, number: u32, arguments: [u64; 6]) -> Self {
        Self { is_of_start: true, ..Self::new(name, number, arguments) }
    }

    /// True if a filter would end the thread or process that makes this call. `instruction` returns
    /// the filter's instruction by number, `None` behind the last one.
    ///
    /// An invalid filter, which the kernel would have refused, counts as one that ends every
    /// caller.
    #[must_use]
    pub fn would_be_ended_by(&self, instruction: impl Fn(usize) -> Option<Instruction>) -> bool {
        // The kernel takes the lowest of several filters' answers, as a signed number. Ending the
        // process is negative, ending the thread 0, a signal 0x30000: all below an error.
        const ERRNO: i32 = 0x0005_0000;
        let facts = CallFacts::new(self.number, self.arguments);
        run(instruction, &facts).is_none_or(|answer| answer.cast_signed() < ERRNO)
    }
}

const PAGE: u64 = PAGE_BYTES_MAX as u64;
const READ_WRITE: u64 = 3;
/// File descriptor argument for anonymous memory: all bits set.
const NONE: u64 = u64::MAX;
/// `AT_FDCWD`.
const HERE: u64 = -100_i64 as u64;

/// System calls that the agent makes, at its start or at any time (crates/ring/src/sys.rs).
pub const AGENT_CALLS: &[Call] = &[
    Call::new("mmap", numbers::MMAP, [0, PAGE, READ_WRITE, 0x4022, NONE, 0]),
    Call::of_start("mmap", numbers::MMAP, [0, PAGE, READ_WRITE, 0x01, 3, 0]),
    Call::new("munmap", numbers::MUNMAP, [0, PAGE, 0, 0, 0, 0]),
    Call::new("mprotect", numbers::MPROTECT, [0, PAGE, READ_WRITE, 0, 0, 0]),
    Call::new("madvise", numbers::MADVISE, [0, PAGE, 16, 0, 0, 0]),
    // FUTEX_WAIT and FUTEX_WAKE, on shared memory.
    Call::new("futex", numbers::FUTEX, [0, 0, 0, 0, 0, 0]),
    Call::new("futex", numbers::FUTEX, [0, 1, 1, 0, 0, 0]),
    Call::new("openat", numbers::OPENAT, [HERE, 0, 0o2_000_000, 0, 0, 0]),
    Call::of_start("openat", numbers::OPENAT, [HERE, 0, 0o2_000_002, 0, 0, 0]),
    Call::new("read", numbers::READ, [3, 0, 512, 0, 0, 0]),
    Call::new("pread64", numbers::PREAD64, [3, 0, 512, 0, 0, 0]),
    Call::new("close", numbers::CLOSE, [3, 0, 0, 0, 0, 0]),
    // F_GET_SEALS.
    Call::of_start("fcntl", numbers::FCNTL, [3, 1034, 0, 0, 0, 0]),
    // PROCMAP_QUERY.
    Call::new("ioctl", numbers::IOCTL, [3, 0xc068_6611, 0, 0, 0, 0]),
    // An invalid operation number; MS_ASYNC.
    Call::new("rt_sigprocmask", numbers::RT_SIGPROCMASK, [u32::MAX as u64, 0, 0, 8, 0, 0]),
    Call::new("msync", numbers::MSYNC, [0, PAGE, 1, 0, 0, 0]),
    Call::new("process_vm_readv", numbers::PROCESS_VM_READV, [1, 0, 1, 0, 1, 0]),
    Call::of_start("readlinkat", numbers::READLINKAT, [HERE, 0, 0, PAGE, 0, 0]),
    // SIG_SETMASK.
    Call::new("rt_sigprocmask", numbers::RT_SIGPROCMASK, [2, 0, 0, 8, 0, 0]),
    Call::new("getpid", numbers::GETPID, [0; 6]),
    Call::new("getppid", numbers::GETPPID, [0; 6]),
    Call::new("gettid", numbers::GETTID, [0; 6]),
    Call::new("kill", numbers::KILL, [1, 0, 0, 0, 0, 0]),
    Call::new("sigaltstack", numbers::SIGALTSTACK, [0, 0, 0, 0, 0, 0]),
    Call::new("prlimit64", numbers::PRLIMIT64, [0, 3, 0, 0, 0, 0]),
    // RLIMIT_AS.
    Call::of_start("prlimit64", numbers::PRLIMIT64, [0, 9, 0, 0, 0, 0]),
    Call::new("clock_gettime", numbers::CLOCK_GETTIME, [1, 0, 0, 0, 0, 0]),
    Call::new("clock_gettime", numbers::CLOCK_GETTIME, [4, 0, 0, 0, 0, 0]),
];
