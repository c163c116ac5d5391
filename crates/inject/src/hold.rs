//! Stop of a recorded process at a moment when no thread is allocating, so that its memory and its
//! recorded state can be read together. A process without an agent is stopped at any moment.
//!
//! Threads in the agent, or in an allocator that the agent has called, run on for a moment while
//! all others are stopped. If this process is killed, the kernel resumes all threads.
//!
//! ```text
//! without a copy   stop, read ........................................, resume
//! with a copy      stop, copy, resume; read the copy, end it; analyse ....
//! with little room stop, copy, resume; analyse the copy .............., end it
//! ```
//! Without a copy nothing is written into the process; with one, some words below a stack. The
//! process may end, fork or exec while its copy is read.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use heapr_proc::mappings;
use heapr_proc::{Mapping, thread_name};

use crate::agent_place::{AgentPlace, agent_place};
use crate::allocator_code::is_in;
use crate::copy::{self, Copied};
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::own_thread::in_own_thread;
use crate::remote::{Borrowed, Gadgets};
use crate::report::Stopwatch;
use crate::stop::{Settled, Stopped, StoppedThread};
use crate::thread_place::{choose_thread, stack_words};
use crate::timed_look::{LetGo, look_in_time};
use crate::{plan, ptrace, seccomp, target};

/// Longest wait for a suitable moment.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE_BETWEEN: Duration = Duration::from_millis(5);
/// Longest time for the threads to stop; part of the pause.
const STOP_LIMIT: Duration = Duration::from_millis(50);
const SETTLE_LIMIT: Duration = Duration::from_millis(30);
/// Number of tries after which a thread in the allocator no longer delays the stop.
const TRIES_MAX: u32 = 8;
/// Interval of the checks whether a copy may stay.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Size in bytes of the part of a stack in which an allocator has its frames.
const ALLOCATOR_STACK_BYTES: u64 = 2048;

/// A stopped thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldThread {
    /// Thread id in this process's namespace.
    pub tid: u32,
    /// Name of the thread.
    pub name: String,
    /// Stack pointer.
    pub stack_pointer: u64,
    /// Address of the thread's descriptor.
    pub thread_pointer: u64,
    /// All registers as words, vector registers too.
    pub registers: Vec<u64>,
}

/// A process while all of its threads are stopped.
#[derive(Debug, Clone, Default)]
pub struct HeldProcess {
    /// Threads of the process.
    pub threads: Vec<HeldThread>,
    /// Memory ranges of the agent: start and end.
    pub agent: Vec<(u64, u64)>,
    /// True if no thread is allocating.
    pub is_quiet: bool,
}

impl HeldProcess {
    fn name_threads(&mut self, pid: u32) {
        for thread in &mut self.threads {
            thread.name = thread_name(pid, thread.tid).unwrap_or_default();
        }
    }
}

/// Options of a hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct HoldRequest {
    /// Whether a thread waits in the agent for this inspection.
    pub at_exit: bool,
    /// Whether the process may resume as soon as its memory is copied, if that is possible.
    pub copies: bool,
    /// Whether the process may be one without an agent, so that its allocator may be at work.
    pub without_agent: bool,
    /// Longest time for which the process may be stopped while it is read.
    pub longest: Option<Duration>,
}

/// Source of the memory that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// The stopped process.
    Process,
    /// A copy with this process id; the process runs.
    Copy(u32),
    /// Memory that [`Look::keep`] has read from a copy; the copy has ended, and the process runs.
    Kept,
}

/// Reader of a held process.
pub trait Look: Send {
    /// Called when the process is stopped.
    fn stands_still(&mut self);

    /// Reads facts that only the process itself has; then it resumes. Returns whether reading the
    /// memory is worthwhile.
    fn take_down(&mut self) -> bool;

    /// Reads the memory of the copy with this process id into this process, so that the copy can
    /// end before the analysis. Returns whether it has; if not, the copy stays.
    fn keep(&mut self, copy: u32, goes_on: &dyn Fn() -> bool) -> bool {
        let _ = (copy, goes_on);
        false
    }

    /// Reads and analyses the memory. `goes_on` returns whether the source is still valid.
    fn look(&mut self, held: &HeldProcess, from: ReadFrom, goes_on: &dyn Fn() -> bool);
}

/// Report of a hold.
#[derive(Debug, Clone, Default)]
pub struct HoldReport {
    /// Longest time that a thread was stopped in the last try.
    pub pause: Duration,
    /// Number of tries.
    pub try_count: u32,
    /// Number of threads.
    pub thread_count: usize,
    /// Reason why a requested copy was not made.
    pub no_copy: Option<String>,
    /// Lifetime of the copy.
    pub copy_life: Option<Duration>,
    /// Reason why the process was resumed while it was read, so that the result is of no single
    /// moment.
    pub let_go: Option<LetGo>,
    /// Whether another process ended the copy while it was read.
    pub is_copy_lost: bool,
    /// Durations of the last stop's parts.
    pub parts: HoldParts,
}

/// Durations of the parts of a stop, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldParts {
    /// From the first thread's interrupt until all threads are stopped.
    pub stop: Duration,
    /// Until no thread is allocating.
    pub settle: Duration,
    /// Reading registers, and the agent's memory ranges.
    pub registers: Duration,
    /// Making the copy.
    pub copy: Duration,
    /// Reading facts that only the process itself has.
    pub take_down: Duration,
    /// Resuming the threads.
    pub resume: Duration,
}

/// Stops a process and lets `looks` read it.
///
/// # Errors
/// See [`Error`]; the process runs on unchanged.
pub fn hold(pid: u32, request: HoldRequest, looks: &mut dyn Look) -> Result<HoldReport> {
    in_own_thread(|| hold_here(pid, request, looks))
}

fn hold_here(pid: u32, request: HoldRequest, looks: &mut dyn Look) -> Result<HoldReport> {
    target::check(pid, false)?;
    let memory = ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })?;
    let mut report = HoldReport::default();
    // Obstacles are found before the process is stopped.
    let gadgets = if request.copies { gadgets_for_copy(pid, &memory, &mut report) } else { None };
    let may_be_urgent = copy::may_be_urgent(pid);
    let agent = match agent_place(pid, &memory) {
        Err(Error::NotAttached { .. }) if request.without_agent => AgentPlace::none(),
        found => found?,
    };
    let begin = Instant::now();
    loop {
        report.try_count += 1;
        let mut watch = Stopwatch::start();
        let mut stopped = match Stopped::stop(pid, None, STOP_LIMIT)? {
            Ok(stopped) => stopped,
            Err(restless) if begin.elapsed() > LIMIT => return Err(restless.no_moment(begin.elapsed())),
            Err(_) => {
                std::thread::sleep(PAUSE_BETWEEN);
                continue;
            }
        };
        report.parts.stop = watch.lap();
        let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
        let settled = stopped.settle(SETTLE_LIMIT, |thread| {
            let waits = request.at_exit
                && thread.registers.system_call() == Some(libc::SYS_futex)
                && is_in(&agent.code, thread.registers.pc());
            !waits && is_at_allocating(&agent, &memory, &mappings, thread)
        })?;
        let is_last = report.try_count >= TRIES_MAX && !matches!(settled, Settled::Runs(_));
        if settled != Settled::Quiet && !is_last {
            stopped.resume();
            if begin.elapsed() > LIMIT {
                let reason = "a thread was in the allocator at each try".to_owned();
                return Err(Error::NoQuietMoment { pid, seconds: LIMIT.as_secs(), reason });
            }
            std::thread::sleep(PAUSE_BETWEEN);
            continue;
        }
        report.parts.settle = watch.lap();
        report.thread_count = stopped.threads.len();
        let threads = stopped.threads.iter().map(held_thread);
        let threads = threads.collect::<std::io::Result<Vec<_>>>();
        let threads = threads.map_err(|source| Error::Trace { pid, call: "PTRACE_GETREGSET", source })?;
        let mut held =
            HeldProcess { threads, agent: agent.memory_now(&memory), is_quiet: settled == Settled::Quiet };
        looks.stands_still();
        report.parts.registers = watch.lap();
        let copied = gadgets.and_then(|gadgets| {
            let made = make_copy(pid, &memory, &mappings, &stopped, gadgets, may_be_urgent);
            made.map_err(|reason| report.no_copy = Some(reason)).ok()
        });
        report.parts.copy = watch.lap();
        // Thread names are read later if possible, because each needs a file access.
        match copied {
            None => {
                held.name_threads(pid);
                report.let_go = look_at_process(&mut stopped, request.longest, &held, looks).err();
                report.pause = stopped.resume();
            }
            Some(copied) => {
                let since = Instant::now();
                let is_worth_it = looks.take_down();
                report.parts.take_down = watch.lap();
                report.pause = stopped.resume();
                report.parts.resume = watch.lap();
                held.name_threads(pid);
                if is_worth_it {
                    look_at_copy(copied, since, &held, looks, &mut report);
                }
            }
        }
        return Ok(report);
    }
}

/// Finds the instructions that make a copy; `None`, with the reason in the report, if the process
/// cannot be copied.
fn gadgets_for_copy(pid: u32, memory: &ProcessMemory, report: &mut HoldReport) -> Option<Gadgets> {
    report.no_copy = copy::obstacle(pid);
    if report.no_copy.is_some() {
        return None;
    }
    plan::gadgets(pid, memory).map_err(|error| report.no_copy = Some(error.to_string())).ok()
}

/// Reads a stopped process, which is released if that takes too long.
fn look_at_process(
    stopped: &mut Stopped,
    longest: Option<Duration>,
    held: &HeldProcess,
    looks: &mut dyn Look,
) -> std::result::Result<(), LetGo> {
    let is_over = AtomicBool::new(false);
    let look = || looks.look(held, ReadFrom::Process, &|| !is_over.load(Relaxed));
    let let_go = || {
        is_over.store(true, Relaxed);
        stopped.release();
    };
    look_in_time(longest, look, let_go)
}

/// Reads a copy while the process runs, and ends the copy. `since`: when it was made.
fn look_at_copy(
    copied: Copied,
    since: Instant,
    held: &HeldProcess,
    looks: &mut dyn Look,
    report: &mut HoldReport,
) {
    copied.settle_down();
    let looked = Cell::new(Instant::now());
    let goes_on = || {
        if looked.get().elapsed() < LOOK_AGAIN {
            return true;
        }
        looked.set(Instant::now());
        copied.is_there() && !copy::is_room_short(copied.number())
    };
    let is_kept = looks.keep(copied.number(), &goes_on);
    if !is_kept {
        looks.look(held, ReadFrom::Copy(copied.number()), &goes_on);
    }
    // Data from a copy that ended meanwhile is incomplete.
    report.is_copy_lost = !copied.is_there();
    drop(copied);
    report.copy_life = Some(since.elapsed());
    if is_kept && !report.is_copy_lost {
        looks.look(held, ReadFrom::Kept, &|| true);
    }
}

/// Copies a stopped process, or returns the reason why it cannot be copied.
fn make_copy(
    pid: u32,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    stopped: &Stopped,
    gadgets: Gadgets,
    may_be_urgent: bool,
) -> std::result::Result<Copied, String> {
    let is_filtered = seccomp::has_any(pid);
    if let Some(reason) = is_filtered.then(|| copy::check_filters(pid, &stopped.threads)).flatten() {
        return Err(reason);
    }
    let thread = choose_thread(memory, mappings, &stopped.threads)
        .ok_or_else(|| "no thread has room on its stack".to_owned())?;
    let mut borrowed = Borrowed::new(pid, memory, gadgets, thread).map_err(|error| error.to_string())?;
    let outcome = copy::copy(pid, &mut borrowed, may_be_urgent && !is_filtered);
    let is_home = borrowed.bring_home();
    let copied = outcome.map_err(|error| error.to_string())?.map_err(str::to_owned)?;
    is_home.map_err(|error| error.to_string())?;
    Ok(copied)
}

fn held_thread(thread: &StoppedThread) -> std::io::Result<HeldThread> {
    let mut registers = thread.registers.words();
    let extended = ptrace::extended_state(thread.tid)?;
    registers.extend(extended.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)));
    Ok(HeldThread {
        tid: thread.tid,
        name: String::new(),
        stack_pointer: thread.registers.sp(),
        thread_pointer: thread.registers.thread_pointer(),
        registers,
    })
}

/// True if a thread is in the agent, or in a function that it has called. False for a thread in
/// user code, whatever earlier calls have left on its stack.
fn is_at_allocating(
    agent: &AgentPlace,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    let pc_avma = thread.registers.pc();
    if is_in(&agent.code, pc_avma) {
        return true;
    }
    // Allocators lie in libraries.
    let is_in_library = mappings::find(mappings, pc_avma)
        .is_some_and(|mapping| mapping.name.contains(".so") || mapping.name == "[vdso]");
    let words = || stack_words(memory, mappings, thread.registers.sp(), ALLOCATOR_STACK_BYTES);
    is_in_library && words().is_none_or(|words| words.iter().any(|&word| is_in(&agent.code, word)))
}
