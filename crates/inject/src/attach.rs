//! Attaching.
//!
//! ```text
//! the target runs   plan: modules, functions, prologues, the agent laid out
//! it stands still   nobody in the allocator or in bytes to be overwritten; else those run on for a moment
//!                   one thread is borrowed: map the agent, give it its imports, a thread key and the pool; start it
//!                   the record for the detach, then the jumps, one after the other
//! the target runs   and each call of its allocator is recorded
//! ```
//!
//! Up to the first jump nothing that the program sees has changed; each jump is one write and stands for itself. If we die
//! at whatever point, what is left is mapped memory without use, or an agent that finds out that its recorder is gone.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::install::install;
use crate::maps::{self, Mapping};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::plan::Plan;
use crate::remote::Borrowed;
use crate::report::{AttachReport, PauseParts, Stopwatch};
use crate::stop::{Stopped, StoppedThread};
use crate::{detach, quiet, target};

/// What to attach, and how.
#[derive(Debug, Clone, Copy)]
pub struct AttachRequest<'a> {
    /// The target, as this process sees it.
    pub pid: u32,
    /// The agent's shared object.
    pub agent: &'a [u8],
    /// Descriptor, in this process, of the session's shared buffers.
    pub pool: i32,
    /// Value of the session variable for programs that the target starts; empty: they are not followed.
    pub session: &'a str,
    /// The agent's file for them, if the target can see it.
    pub agent_path: Option<&'a Path>,
    /// mmap, munmap and mremap too.
    pub hooks_mmap: bool,
    /// For tests: the number of the step that fails.
    pub fail_at: Option<u32>,
}

/// How long a good moment is waited for.
const LIMIT: Duration = Duration::from_secs(5);
/// After this long a thread in the allocator is no longer waited for.
const ALLOCATOR_LIMIT: Duration = Duration::from_millis(500);
/// How long the threads may take to stop, and how long those in the way may run on while the others stand still. Both
/// are parts of the target's pause.
const STOP_LIMIT: Duration = Duration::from_millis(50);
/// See [`STOP_LIMIT`].
const SETTLE_LIMIT: Duration = Duration::from_millis(30);
/// Between two tries.
const PAUSE_BETWEEN: Duration = Duration::from_millis(10);

const PAGE: u64 = 4096;

/// The target while all of its threads stand still.
#[derive(Debug, Clone)]
pub struct Standstill {
    /// The target.
    pub pid: u32,
    /// Where its threads have their descriptors.
    pub thread_pointers: Vec<u64>,
    /// Whether it is certain that no thread is in the allocator.
    pub is_allocator_quiet: bool,
}

/// Attaches. `while_stopped` is called while all threads stand still, before anything is recorded: what it sees is what was
/// allocated before.
///
/// # Errors
/// See [`Error`]; the target runs on as it was.
pub fn attach(
    request: &AttachRequest<'_>,
    while_stopped: &mut dyn FnMut(&Standstill),
) -> Result<AttachReport> {
    let pid = request.pid;
    target::check(pid)?;
    let memory = ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })?;
    let begin = Instant::now();
    let mut report = AttachReport::default();
    let mut plan = None;
    let mut obstacle;
    loop {
        report.try_count += 1;
        let planned = match plan.take() {
            Some(planned) => planned,
            None => {
                // An agent whose recorder is gone is in the way of a new one.
                detach::clear_orphan(pid, &memory, request)?;
                Plan::make(pid, &memory, request.agent, request.hooks_mmap)?
            }
        };
        match try_once(request, &memory, planned, begin, &mut report, while_stopped)? {
            Outcome::Done => return Ok(report),
            Outcome::Again { plan: same, reason } => {
                plan = same;
                obstacle = reason;
            }
        }
        if begin.elapsed() > LIMIT {
            return Err(Error::NoQuietMoment { pid, seconds: LIMIT.as_secs(), reason: obstacle.to_owned() });
        }
        std::thread::sleep(PAUSE_BETWEEN);
    }
}

#[expect(clippy::large_enum_variant, reason = "one value at a time")]
enum Outcome {
    Done,
    Again { plan: Option<Plan>, reason: &'static str },
}

fn try_once(
    request: &AttachRequest<'_>,
    memory: &ProcessMemory,
    plan: Plan,
    begin: Instant,
    report: &mut AttachReport,
    while_stopped: &mut dyn FnMut(&Standstill),
) -> Result<Outcome> {
    let pid = request.pid;
    let mut parts = PauseParts::default();
    let mut stopwatch = Stopwatch::start();
    let Some(mut stopped) = Stopped::stop(pid, STOP_LIMIT)? else {
        let reason = "a thread did not stop (it waits for a child made by vfork, or for a disk)";
        return Ok(Outcome::Again { plan: Some(plan), reason });
    };
    parts.stop = stopwatch.lap();
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    let is_quiet = stopped.settle(SETTLE_LIMIT, |thread| {
        quiet::is_in_prologue(&plan, memory, &mappings, thread)
            || quiet::is_in_allocator(&plan, memory, &mappings, thread)
    })?;
    parts.settle = stopwatch.lap();
    let again = |stopped: Stopped, report: &mut AttachReport, plan, reason| {
        report.pause = report.pause.max(stopped.resume());
        Ok(Outcome::Again { plan, reason })
    };
    if !is_quiet {
        let is_certain =
            stopped.threads.iter().all(|thread| !quiet::is_in_prologue(&plan, memory, &mappings, thread));
        if !is_certain || begin.elapsed() < ALLOCATOR_LIMIT {
            return again(stopped, report, Some(plan), "a thread was in the allocator at each try");
        }
    }
    if !plan.modules.is_consistent(memory) {
        return again(stopped, report, None, "a thread was loading a library at each try");
    }
    if !plan.modules.is_unchanged(memory) {
        return again(stopped, report, None, "libraries were loaded all the time");
    }
    // What the settled threads did may have changed the mappings.
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    parts.check = stopwatch.lap();
    while_stopped(&Standstill {
        pid,
        thread_pointers: stopped.threads.iter().map(|thread| thread.registers.fs_base).collect(),
        is_allocator_quiet: is_quiet,
    });
    report.was_allocator_busy = !is_quiet;
    report.thread_count = stopped.threads.len();
    report.module_count = plan.modules.list.len();
    let Some(thread) = choose_thread(memory, &mappings, &stopped.threads) else {
        return again(stopped, report, Some(plan), "no thread has room on its stack");
    };
    let thread = *thread;
    parts.read_heap = stopwatch.lap();
    let outcome = install(request, memory, &mappings, plan, &stopped, &thread, report);
    parts.install = stopwatch.lap();
    report.pause = report.pause.max(stopped.resume());
    parts.resume = stopwatch.lap();
    report.parts = parts;
    outcome.map(|()| Outcome::Done)
}

/// A thread that can be borrowed: in no critical section that must restart when it is left, with room below its stack.
pub(crate) fn choose_thread<'a>(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    threads: &'a [StoppedThread],
) -> Option<&'a StoppedThread> {
    let has_room = |thread: &&StoppedThread| {
        let low = thread.registers.rsp.saturating_sub(Borrowed::STACK_BYTES) & !(PAGE - 1);
        thread.registers.is_64_bit()
            && maps::find(mappings, low)
                .is_some_and(|mapping| mapping.contains(thread.registers.rsp) && mapping.is_writable)
            && memory.read_u64(low).is_ok()
    };
    // A thread in a system call is in no such section.
    let in_call = threads.iter().filter(|thread| thread.registers.system_call().is_some()).find(has_room);
    in_call.or_else(|| threads.iter().find(has_room))
}
