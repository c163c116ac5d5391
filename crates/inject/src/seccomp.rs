//! Seccomp filters of the target: would they end it for heapr's system calls?
//!
//! A filter may answer a system call with an error, which does no harm. Or it may end the thread or
//! the process, or send a signal that ends it. The filters are thus read before anything is done.
//! They are tested with each call that an attach makes in the target, and that the agent makes
//! later.
//!
//! ```text
//! no thread has a filter --------------------------------> continue
//! a thread may only read, write and exit (strict mode) --> Error::SeccompForbids
//! filters can be read (CAP_SYS_ADMIN): all are harmless -> continue
//!                                      one is not -------> Error::SeccompForbids
//! they cannot: no more than this process has itself -----> continue: they are the container's
//!              more -------------------------------------> Error::SeccompUnreadable
//! ```

use heapr_known::machine::SMALLEST_PAGE_BYTES;
use heapr_wire::seccomp::Call;
pub(crate) use heapr_wire::seccomp::{AGENT_CALLS as OF_AGENT, Instruction};

use crate::error::{Error, Result};
use crate::mapping_flags::{MAP_FLAGS, PROT_READ_EXECUTE, PROT_READ_WRITE};
use crate::{ptrace, target};

/// Example of a size.
const PAGE: u64 = SMALLEST_PAGE_BYTES;
/// File descriptor argument for anonymous memory: all bits set.
const NONE: u64 = u64::MAX;

/// System calls that threads of the target make for an attach, in addition to the agent's.
pub(crate) const OF_ATTACH: &[Call] = &[
    Call::new("mmap", libc::SYS_mmap as u32, [PAGE, PAGE, PROT_READ_WRITE, MAP_FLAGS, NONE, 0]),
    Call::new("mprotect", libc::SYS_mprotect as u32, [0, PAGE, PROT_READ_EXECUTE, 0, 0, 0]),
    Call::new("socketpair", libc::SYS_socketpair as u32, [1, 0o2_000_002, 0, 0, 0, 0]),
    Call::new("recvmsg", libc::SYS_recvmsg as u32, [3, 0, 0x4000_0040, 0, 0, 0]),
    Call::new("rt_sigreturn", libc::SYS_rt_sigreturn as u32, [0; 6]),
];

/// System calls that threads of the target make for a detach.
pub(crate) const OF_DETACH: &[Call] = &[
    Call::new("munmap", libc::SYS_munmap as u32, [0, PAGE, 0, 0, 0, 0]),
    Call::new("rt_sigreturn", libc::SYS_rt_sigreturn as u32, [0; 6]),
];

/// True if any thread has a filter; new threads inherit those of their creator.
pub(crate) fn has_any(pid: u32) -> bool {
    let threads = target::threads(pid).unwrap_or_default();
    threads.into_iter().any(|tid| target::seccomp(pid, tid).is_some_and(|(mode, _)| mode != 0))
}

/// Checks whether stopped threads may make these calls.
///
/// # Errors
/// [`Error::SeccompForbids`], [`Error::SeccompUnreadable`].
pub(crate) fn check(pid: u32, tids: impl Iterator<Item = u32>, calls: &[&[Call]]) -> Result<()> {
    // Threads mostly have equal filters.
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

/// True if one of the filters would end the thread or process that makes the call.
fn would_end(filters: &[Vec<Instruction>], call: &Call) -> bool {
    filters.iter().any(|filter| call.would_be_ended_by(|number| filter.get(number).copied()))
}

/// Reads all filters of a stopped thread.
fn filters(tid: u32) -> std::io::Result<Vec<Vec<Instruction>>> {
    let mut filters = Vec::new();
    loop {
        match ptrace::seccomp_filter(tid, filters.len()) {
            Ok(filter) => filters.push(filter),
            // There are no more filters, or none at all.
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => {
                return Ok(filters);
            }
            Err(error) => return Err(error),
        }
    }
}

/// True if a thread has only filters that this process has too: processes in one container have the
/// same.
fn is_as_ours(pid: u32, tid: u32) -> bool {
    let own = target::seccomp(std::process::id(), ptrace::own_tid());
    match (target::seccomp(pid, tid), own) {
        (Some((0, _)) | None, _) => true,
        (Some((2, filters)), Some((2, own_filters))) => filters <= own_filters,
        _ => false,
    }
}
