//! Seccomp filters, and what the agent asks the kernel for: would a filter end the program for it?
//!
//! The injector asks before it attaches to a process that has filters; the agent asks when its
//! program installs one.

mod program;

pub use self::program::Instruction;
use self::program::{CallFacts, run};

/// A system call with those of its arguments that filters look at.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// Its number on x86-64.
    pub number: u32,
    /// Its arguments; what differs from call to call is made up.
    pub arguments: [u64; 6],
    /// The agent makes it while it starts, and not later.
    pub is_of_start: bool,
}

impl Call {
    /// A call that may come at any time.
    #[must_use]
    pub const fn new(name: &'static str, number: u32, arguments: [u64; 6]) -> Self {
        Self { name, number, arguments, is_of_start: false }
    }

    const fn of_start(name: &'static str, number: u32, arguments: [u64; 6]) -> Self {
        Self { is_of_start: true, ..Self::new(name, number, arguments) }
    }

    /// Whether a filter would end who makes this call. `instruction`: the filter's, by number;
    /// `None` behind the last.
    ///
    /// A filter that the kernel would not have taken ends everybody.
    #[must_use]
    pub fn would_be_ended_by(&self, instruction: impl Fn(usize) -> Option<Instruction>) -> bool {
        // Of several answers the kernel takes the lowest as a signed number. Ending the process is
        // negative, ending the thread 0, a signal 0x30000: all below an error.
        const ERRNO: i32 = 0x0005_0000;
        let facts = CallFacts::new(self.number, self.arguments);
        run(instruction, &facts).is_none_or(|answer| answer.cast_signed() < ERRNO)
    }
}

const PAGE: u64 = 4096;
const READ_WRITE: u64 = 3;
/// All bits: no descriptor.
const NONE: u64 = u64::MAX;
/// `AT_FDCWD`.
const HERE: u64 = -100_i64 as u64;

/// What the agent calls, at its start and at any time after (crates/ring/src/sys.rs).
pub const AGENT_CALLS: &[Call] = &[
    Call::new("mmap", 9, [0, PAGE, READ_WRITE, 0x4022, NONE, 0]),
    Call::of_start("mmap", 9, [0, PAGE, READ_WRITE, 0x01, 3, 0]),
    Call::new("munmap", 11, [0, PAGE, 0, 0, 0, 0]),
    Call::new("mprotect", 10, [0, PAGE, READ_WRITE, 0, 0, 0]),
    Call::new("madvise", 28, [0, PAGE, 16, 0, 0, 0]),
    // FUTEX_WAIT and FUTEX_WAKE, on shared memory.
    Call::new("futex", 202, [0, 0, 0, 0, 0, 0]),
    Call::new("futex", 202, [0, 1, 1, 0, 0, 0]),
    Call::new("openat", 257, [HERE, 0, 0o2_000_000, 0, 0, 0]),
    Call::of_start("openat", 257, [HERE, 0, 0o2_000_002, 0, 0, 0]),
    Call::new("read", 0, [3, 0, 512, 0, 0, 0]),
    Call::new("pread64", 17, [3, 0, 512, 0, 0, 0]),
    Call::new("close", 3, [3, 0, 0, 0, 0, 0]),
    // F_GET_SEALS.
    Call::of_start("fcntl", 72, [3, 1034, 0, 0, 0, 0]),
    // PROCMAP_QUERY.
    Call::new("ioctl", 16, [3, 0xc068_6611, 0, 0, 0, 0]),
    // With a change that there is not; MS_ASYNC.
    Call::new("rt_sigprocmask", 14, [u32::MAX as u64, 0, 0, 8, 0, 0]),
    Call::new("msync", 26, [0, PAGE, 1, 0, 0, 0]),
    Call::new("process_vm_readv", 310, [1, 0, 1, 0, 1, 0]),
    Call::of_start("readlinkat", 267, [HERE, 0, 0, PAGE, 0, 0]),
    // SIG_SETMASK.
    Call::new("rt_sigprocmask", 14, [2, 0, 0, 8, 0, 0]),
    Call::new("getpid", 39, [0; 6]),
    Call::new("getppid", 110, [0; 6]),
    Call::new("gettid", 186, [0; 6]),
    Call::new("kill", 62, [1, 0, 0, 0, 0, 0]),
    Call::new("sigaltstack", 131, [0, 0, 0, 0, 0, 0]),
    Call::new("prlimit64", 302, [0, 3, 0, 0, 0, 0]),
    // RLIMIT_AS.
    Call::of_start("prlimit64", 302, [0, 9, 0, 0, 0, 0]),
    Call::new("clock_gettime", 228, [1, 0, 0, 0, 0, 0]),
    Call::new("clock_gettime", 228, [4, 0, 0, 0, 0, 0]),
];
