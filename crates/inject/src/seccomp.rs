//! Seccomp filters of the target: would they end it for what is done in it?
//!
//! A filter may answer a system call with an error, which is no harm, or by ending the thread, the process, or by a signal that ends
//! it. So they are read before anything is done, and asked about each call that an attach makes in the target, and that the
//! agent makes there later, in whichever thread.
//!
//! ```text
//! no thread has a filter ------------------------------> go on
//! a thread may but read, write and exit (strict mode) --> Error::SeccompForbids
//! filters can be read (CAP_SYS_ADMIN) --none would end it-> go on
//!                                     --one would --------> Error::SeccompForbids
//! they cannot: no more of them than we have ourselves ---> go on: it is our container's
//!              more of them -----------------------------> Error::SeccompUnreadable
//! ```

mod program;

pub(crate) use self::program::Instruction;

use self::program::CallFacts;
use crate::error::{Error, Result};
use crate::{ptrace, target};

/// A system call with those of its arguments that filters look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    name: &'static str,
    number: u32,
    arguments: [u64; 6],
}

const fn call(name: &'static str, number: u32, arguments: [u64; 6]) -> Call {
    Call { name, number, arguments }
}

const PAGE: u64 = 4096;
const READ_WRITE: u64 = 3;
/// All bits: no descriptor.
const NONE: u64 = u64::MAX;

/// What the agent calls, at its start and at any time after (crates/ring/src/sys.rs).
pub(crate) const OF_AGENT: &[Call] = &[
    call("mmap", 9, [0, PAGE, READ_WRITE, 0x4022, NONE, 0]),
    call("mmap", 9, [0, PAGE, READ_WRITE, 0x01, 3, 0]),
    call("munmap", 11, [0, PAGE, 0, 0, 0, 0]),
    call("mprotect", 10, [0, PAGE, READ_WRITE, 0, 0, 0]),
    call("madvise", 28, [0, PAGE, 16, 0, 0, 0]),
    // FUTEX_WAIT and FUTEX_WAKE, on shared memory.
    call("futex", 202, [0, 0, 0, 0, 0, 0]),
    call("futex", 202, [0, 1, 1, 0, 0, 0]),
    call("openat", 257, [-100_i64 as u64, 0, 0o2_000_000, 0, 0, 0]),
    call("openat", 257, [-100_i64 as u64, 0, 0o2_000_002, 0, 0, 0]),
    call("read", 0, [3, 0, 512, 0, 0, 0]),
    call("close", 3, [3, 0, 0, 0, 0, 0]),
    // F_GET_SEALS.
    call("fcntl", 72, [3, 1034, 0, 0, 0, 0]),
    // PROCMAP_QUERY.
    call("ioctl", 16, [3, 0xc068_6611, 0, 0, 0, 0]),
    call("readlinkat", 267, [-100_i64 as u64, 0, 0, PAGE, 0, 0]),
    call("getpid", 39, [0; 6]),
    call("getppid", 110, [0; 6]),
    call("gettid", 186, [0; 6]),
    call("kill", 62, [1, 0, 0, 0, 0, 0]),
    call("sigaltstack", 131, [0, 0, 0, 0, 0, 0]),
    call("prlimit64", 302, [0, 3, 0, 0, 0, 0]),
    call("clock_gettime", 228, [1, 0, 0, 0, 0, 0]),
    call("clock_gettime", 228, [4, 0, 0, 0, 0, 0]),
];

/// What else an attach has a thread of the target call.
pub(crate) const OF_ATTACH: &[Call] = &[
    call("mmap", 9, [PAGE, PAGE, READ_WRITE, 0x10_4022, NONE, 0]),
    call("mprotect", 10, [0, PAGE, 5, 0, 0, 0]),
    call("socketpair", 53, [1, 0o2_000_002, 0, 0, 0, 0]),
    call("recvmsg", 47, [3, 0, 0x4000_0040, 0, 0, 0]),
    call("rt_sigreturn", 15, [0; 6]),
];

/// What a detach has a thread of the target call.
pub(crate) const OF_DETACH: &[Call] =
    &[call("munmap", 11, [0, PAGE, 0, 0, 0, 0]), call("rt_sigreturn", 15, [0; 6])];

/// Whether any thread has a filter; new threads have those of who makes them.
pub(crate) fn has_any(pid: u32) -> bool {
    let threads = target::threads(pid).unwrap_or_default();
    threads.into_iter().any(|tid| target::seccomp(pid, tid).is_some_and(|(mode, _)| mode != 0))
}

/// Whether stopped threads may make these calls.
///
/// # Errors
/// [`Error::SeccompForbids`], [`Error::SeccompUnreadable`].
pub(crate) fn check(pid: u32, tids: impl Iterator<Item = u32>, calls: &[&[Call]]) -> Result<()> {
    // Threads mostly have the same.
    let mut seen: Vec<Vec<Vec<Instruction>>> = Vec::new();
    for tid in tids {
        let filters = match filters(tid) {
            Ok(filters) => filters,
            Err(_) if is_as_ours(pid, tid) => continue,
            Err(_) => return Err(Error::SeccompUnreadable { pid }),
        };
        const STRICT: u32 = 1;
        if filters.is_empty() && target::seccomp(pid, tid).is_some_and(|(mode, _)| mode == STRICT) {
            return Err(Error::SeccompForbids { pid, call: "mmap" });
        }
        if seen.contains(&filters) {
            continue;
        }
        for call in calls.iter().copied().flatten() {
            if would_end(&filters, call) {
                return Err(Error::SeccompForbids { pid, call: call.name });
            }
        }
        seen.push(filters);
    }
    Ok(())
}

/// Whether one of the filters would end who makes the call. Of several answers the kernel takes the lowest as a signed number.
fn would_end(filters: &[Vec<Instruction>], call: &Call) -> bool {
    const ERRNO: i32 = 0x0005_0000;
    let facts = CallFacts::new(call.number, call.arguments);
    // Ending the process is negative, ending the thread 0, a signal 0x30000: all below an error.
    filters
        .iter()
        .any(|filter| program::run(filter, &facts).is_none_or(|answer| answer.cast_signed() < ERRNO))
}

/// All filters of a stopped thread.
fn filters(tid: u32) -> std::io::Result<Vec<Vec<Instruction>>> {
    let mut filters = Vec::new();
    loop {
        match ptrace::seccomp_filter(tid, filters.len()) {
            Ok(filter) => filters.push(filter),
            // The last was the one before; or it has none at all.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => {
                return Ok(filters);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Whether a thread has no filters but those that this process has too: who is in the same container got the same.
fn is_as_ours(pid: u32, tid: u32) -> bool {
    let own = target::seccomp(std::process::id(), ptrace::own_tid());
    match (target::seccomp(pid, tid), own) {
        (Some((0, _)) | None, _) => true,
        (Some((2, filters)), Some((2, own_filters))) => filters <= own_filters,
        _ => false,
    }
}
