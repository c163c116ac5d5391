//! Short stop of a process to read it, without writing into it.
//!
//! Threads in the C library's allocator run on for a moment while all others are stopped. If this
//! process is killed, the kernel resumes all threads.

use std::time::{Duration, Instant};

use heapr_proc::{Mapping, mappings};

use crate::error::{Error, Result};
use crate::own_thread::in_own_thread;
use crate::stop::{Settled, Stopped, StoppedThread};
use crate::target;
use crate::timed_look::look_in_time;

/// Longest time for the threads to stop.
const STOP_LIMIT: Duration = Duration::from_millis(50);
const SETTLE_LIMIT: Duration = Duration::from_millis(10);
/// Number of tries: a vfork or a slow disk access ends after some time.
const TRIES: u32 = 20;
const PAUSE_BETWEEN: Duration = Duration::from_millis(10);
/// Longest time for all tries, if each takes long because a thread cannot stop.
const LIMIT: Duration = Duration::from_secs(5);

/// A process while all of its threads are stopped.
#[derive(Debug, Clone, Default)]
pub struct StillProcess {
    /// Addresses of the threads' descriptors.
    pub thread_pointers: Vec<u64>,
    /// Stack pointers of the threads.
    pub stack_pointers: Vec<u64>,
    /// True if no thread is in the allocator.
    pub is_allocator_quiet: bool,
}

/// Calls `while_still` while all threads of a process are stopped. Returns the duration of the
/// stop.
///
/// # Errors
/// Returns an error if the process does not exist, may not be traced, or does not stop; it runs on
/// unchanged.
pub fn stand_still(pid: u32, while_still: &mut (dyn FnMut(&StillProcess) + Send)) -> Result<Duration> {
    in_own_thread(|| stand_still_here(pid, while_still))
}

fn stand_still_here(pid: u32, while_still: &mut (dyn FnMut(&StillProcess) + Send)) -> Result<Duration> {
    target::check(pid, false)?;
    let begin = Instant::now();
    let mut last = None;
    for _ in 0..TRIES {
        let mut stopped = match Stopped::stop(pid, None, STOP_LIMIT)? {
            Ok(stopped) => stopped,
            Err(restless) if begin.elapsed() > LIMIT => return Err(restless.no_moment(begin.elapsed())),
            Err(restless) => {
                last = Some(restless);
                std::thread::sleep(PAUSE_BETWEEN);
                continue;
            }
        };
        let mapped = mappings::read(pid).map_err(|_| Error::Ended { pid })?;
        let settled = stopped.settle(SETTLE_LIMIT, |thread| is_at_allocating(&mapped, thread))?;
        if let Settled::Runs(restless) = settled {
            last = Some(restless);
            continue;
        }
        let threads = &stopped.threads;
        let still = StillProcess {
            thread_pointers: threads.iter().map(|thread| thread.registers.thread_pointer()).collect(),
            stack_pointers: threads.iter().map(|thread| thread.registers.sp()).collect(),
            is_allocator_quiet: settled == Settled::Quiet,
        };
        look_in_time(None, || while_still(&still), || stopped.release())
            .map_err(|late| Error::ReadWaits { pid, waited_ms: late.after.as_millis() as u64 })?;
        return Ok(stopped.resume());
    }
    Err(last.map_or(Error::Ended { pid }, |restless| restless.no_moment(begin.elapsed())))
}

/// True if a thread is in the C library's code and may be in its allocator. Threads that wait in
/// the kernel count only in calls by which the allocator maps and unmaps memory.
fn is_at_allocating(mapped: &[Mapping], thread: &StoppedThread) -> bool {
    const CALLS: [libc::c_long; 6] = [
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
        libc::SYS_brk,
    ];
    let code = mappings::find(mapped, thread.registers.pc());
    let is_libc = code.is_some_and(|code| {
        let file = code.name.rsplit('/').next().unwrap_or_default();
        file.starts_with("libc.so.") || file.starts_with("libc-2.")
    });
    is_libc && thread.registers.system_call().is_none_or(|number| CALLS.contains(&number))
}
