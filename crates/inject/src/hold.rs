//! Holding a recorded process still at a moment when none of its threads is at allocating, so that
//! its memory and what was recorded of it can be looked at together.
//!
//! Whoever is in the agent, or in an allocator that the agent has called, runs on for a moment
//! while all others stand still. Should we be killed, the kernel lets all of it go on.
//!
//! ```text
//! without a copy   stop, look ........................................, go on
//! with one         stop, copy, go on; read the copy, end it; look ....
//! with little room stop, copy, go on; look at the copy ..............., end it
//! ```
//! Without a copy nothing is written into the process; with one some words below a stack. Whether
//! the process ends, forks or turns to another program while its copy is read does not matter to
//! the copy.

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
use crate::timed_look::look_in_time;
use crate::{plan, ptrace, seccomp, target};

/// How long a good moment is waited for, and between two tries.
const LIMIT: Duration = Duration::from_secs(5);
const PAUSE_BETWEEN: Duration = Duration::from_millis(5);
/// How long the threads may take to stop, and to leave the allocator: parts of the pause.
const STOP_LIMIT: Duration = Duration::from_millis(50);
const SETTLE_LIMIT: Duration = Duration::from_millis(30);
/// Tries after which a thread in the allocator is no longer waited for.
const TRIES_MAX: u32 = 8;
/// Between two looks whether a copy may stay.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
const FUTEX: u64 = 202;
/// Bytes of a stack in which an allocator has its frames.
const ALLOCATOR_STACK_BYTES: u64 = 2048;

/// A thread that stands still.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldThread {
    /// As we number it.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Stack pointer.
    pub stack_pointer: u64,
    /// Where it has its descriptor.
    pub thread_pointer: u64,
    /// All registers as words, vector registers too.
    pub registers: Vec<u64>,
}

/// A process while all of its threads stand still.
#[derive(Debug, Clone, Default)]
pub struct HeldProcess {
    /// Its threads.
    pub threads: Vec<HeldThread>,
    /// Memory that is the agent's: start and end.
    pub agent: Vec<(u64, u64)>,
    /// No thread is at allocating.
    pub is_quiet: bool,
}

impl HeldProcess {
    fn name_threads(&mut self, pid: u32) {
        for thread in &mut self.threads {
            thread.name = thread_name(pid, thread.tid).unwrap_or_default();
        }
    }
}

/// How a process is held.
#[derive(Debug, Clone, Copy, Default)]
pub struct HoldRequest {
    /// One of its threads waits in the agent to be looked at.
    pub at_exit: bool,
    /// It goes on as soon as a copy of its memory is made, if one can be.
    pub copies: bool,
    /// Longest that it may stand still to be looked at.
    pub longest: Option<Duration>,
}

/// Whose memory is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadFrom {
    /// The process's own: it stands still.
    Process,
    /// That of a copy with this number; the process runs.
    Copy(u32),
    /// What [`Look::keep`] has kept of a copy; that has ended, and the process runs.
    Kept,
}

/// Who looks at a process that is held.
pub trait Look: Send {
    /// It stands still from now on.
    fn stands_still(&mut self);

    /// Takes down what only the process itself tells of this moment; then it goes on. Whether it is
    /// worth looking.
    fn take_down(&mut self) -> bool;

    /// Reads the memory of the copy with this number into ours, so that the copy can end before it
    /// is looked through. Whether it has; if not, the copy stays.
    fn keep(&mut self, copy: u32, goes_on: &dyn Fn() -> bool) -> bool {
        let _ = (copy, goes_on);
        false
    }

    /// Looks through its memory. `goes_on` tells whether that may still be done.
    fn look(&mut self, held: &HeldProcess, from: ReadFrom, goes_on: &dyn Fn() -> bool);
}

/// What a hold was.
#[derive(Debug, Clone, Default)]
pub struct HoldReport {
    /// Longest that a thread stood still at the last try.
    pub pause: Duration,
    /// How often it was tried.
    pub try_count: u32,
    /// Threads.
    pub thread_count: usize,
    /// A copy was asked for, and why there is none.
    pub no_copy: Option<String>,
    /// How long the copy was there.
    pub copy_life: Option<Duration>,
    /// It was let go while it was looked at: what was found is of no one moment.
    pub is_let_go: bool,
    /// The copy was ended by others while it was read.
    pub is_copy_lost: bool,
    /// Where the time of the last stop went.
    pub parts: HoldParts,
}

/// Parts of a stop, which follow each other in this order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HoldParts {
    /// From the first thread's interrupt until all stand still.
    pub stop: Duration,
    /// Until no thread was at allocating.
    pub settle: Duration,
    /// Registers, and where the agent has its memory.
    pub registers: Duration,
    /// Making the copy.
    pub copy: Duration,
    /// What only the process itself tells.
    pub take_down: Duration,
    /// Letting the threads go on.
    pub resume: Duration,
}

/// Holds a recorded process still and has `looks` look at it.
///
/// # Errors
/// See [`Error`]; the process runs on as it was.
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
    // Found before it stands still.
    let gadgets = match request.copies.then(|| copy::obstacle(pid)) {
        None => None,
        Some(None) => match plan::gadgets(pid, &memory) {
            Ok(gadgets) => Some(gadgets),
            Err(error) => {
                report.no_copy = Some(error.to_string());
                None
            }
        },
        Some(obstacle) => {
            report.no_copy = obstacle;
            None
        }
    };
    let may_be_urgent = copy::may_be_urgent(pid);
    let agent = agent_place(pid, &memory)?;
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
                && thread.registers.system_call() == Some(FUTEX)
                && is_in(&agent.code, thread.registers.rip);
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
        // (Names are read at leisure where there is some: a look into a file for each thread.)
        match copied {
            None => {
                held.name_threads(pid);
                let is_over = AtomicBool::new(false);
                let look = || looks.look(&held, ReadFrom::Process, &|| !is_over.load(Relaxed));
                let let_go = || {
                    is_over.store(true, Relaxed);
                    stopped.release();
                };
                report.is_let_go = look_in_time(request.longest, look, let_go).is_err();
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
                        looks.look(&held, ReadFrom::Copy(copied.number()), &goes_on);
                    }
                    // What was read of one that went meanwhile is not all.
                    report.is_copy_lost = !copied.is_there();
                    drop(copied);
                    report.copy_life = Some(since.elapsed());
                    if is_kept && !report.is_copy_lost {
                        looks.look(&held, ReadFrom::Kept, &|| true);
                    }
                }
            }
        }
        return Ok(report);
    }
}

/// Copies a process that stands still; else says why not.
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
        stack_pointer: thread.registers.rsp,
        thread_pointer: thread.registers.fs_base,
        registers,
    })
}

/// Whether a thread is in the agent, or in something that it has called. A thread that runs the
/// program's own code is not, whatever is left of earlier calls on its stack.
fn is_at_allocating(
    agent: &AgentPlace,
    memory: &ProcessMemory,
    mappings: &[Mapping],
    thread: &StoppedThread,
) -> bool {
    let rip = thread.registers.rip;
    if is_in(&agent.code, rip) {
        return true;
    }
    // Allocators lie in libraries.
    let is_in_library = mappings::find(mappings, rip)
        .is_some_and(|mapping| mapping.name.contains(".so") || mapping.name == "[vdso]");
    let words = || stack_words(memory, mappings, thread.registers.rsp, ALLOCATOR_STACK_BYTES);
    is_in_library && words().is_none_or(|words| words.iter().any(|&word| is_in(&agent.code, word)))
}
