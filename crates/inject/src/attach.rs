//! Attach to a running process.
//!
//! ```text
//! the target runs   plan: modules, functions, prologues, the agent laid out
//! it is stopped     no thread in bytes to be overwritten; else such threads run on for a moment
//!                   one thread is borrowed: map the agent; give it its imports, a thread key
//!                   and the pool; start it
//!                   the record for the detach, then the jumps, one after the other, which lead
//!                   to a closed gate
//!                   threads in the allocator run on until they leave it; the heap is at rest
//!                   and is read
//!                   the gate opens
//! the target runs   and each call of its allocator is recorded
//! ```
//!
//! Up to the first jump, nothing that the program sees has changed; each jump is one independent
//! write. If this process dies at any point, it leaves unused mapped memory, or an agent that
//! notices that its recorder is gone.

use std::time::{Duration, Instant};

use crate::attach_request::AttachRequest;
use crate::error::{Error, Result};
use crate::exec_stop::HeldExec;
use crate::install::{Installed, StoppedTarget, install};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::own_thread::in_own_thread;
use crate::plan::Plan;
use crate::report::{AttachReport, PauseParts, Stopwatch};
use crate::restless::Restless;
use crate::stop::{Settled, Stopped};
use crate::timed_look::look_in_time;
use crate::{orphan, protection, removal, seccomp, target, thread_place};
use heapr_proc::Mapping;

/// Longest wait for a suitable moment.
const LIMIT: Duration = Duration::from_secs(5);
/// Longest wait for a suitable moment on a machine too busy for the threads to stop.
const BUSY_LIMIT: Duration = Duration::from_secs(30);
/// Time after which a thread in the allocator no longer delays the attach.
const ALLOCATOR_LIMIT: Duration = Duration::from_millis(500);
/// Longest time for the threads to stop; part of the target's pause.
const STOP_LIMIT: Duration = Duration::from_millis(50);
/// Longest time for which threads in critical code may run on while the others are stopped; part of
/// the target's pause.
const SETTLE_LIMIT: Duration = Duration::from_millis(30);
/// Pause between two tries.
const PAUSE_BETWEEN: Duration = Duration::from_millis(10);

/// The target while all of its threads are stopped.
#[derive(Debug, Clone)]
pub struct Standstill {
    /// Process id of the target.
    pub pid: u32,
    /// Addresses of the threads' descriptors.
    pub thread_pointers: Vec<u64>,
    /// True if no thread is in the allocator.
    pub is_allocator_quiet: bool,
}

/// Attaches. `while_stopped` is called while all threads are stopped, before anything is recorded:
/// it sees the blocks allocated before the attach.
///
/// # Errors
/// See [`Error`]; the target runs on unchanged.
pub fn attach(
    request: &AttachRequest<'_>,
    while_stopped: &mut (dyn FnMut(&Standstill) + Send),
) -> Result<AttachReport> {
    attach_held(request, None, while_stopped)
}

/// Attaches like [`attach`], to a program that may be stopped already.
///
/// # Errors
/// The errors of [`attach`].
pub fn attach_held(
    request: &AttachRequest<'_>,
    held: Option<HeldExec>,
    while_stopped: &mut (dyn FnMut(&Standstill) + Send),
) -> Result<AttachReport> {
    match held {
        None => in_own_thread(|| attach_here(request, None, while_stopped)),
        // Only this thread may send ptrace requests to the program.
        held => attach_here(request, held, while_stopped),
    }
}

fn attach_here(
    request: &AttachRequest<'_>,
    held: Option<HeldExec>,
    while_stopped: &mut (dyn FnMut(&Standstill) + Send),
) -> Result<AttachReport> {
    let pid = request.pid;
    target::check(pid, held.is_some())?;
    if heapr_proc::is_frozen(pid) {
        return Err(Error::Unsupported { pid, reason: "its control group is frozen: thaw it first" });
    }
    let memory = ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })?;
    let mut attaching = Attaching {
        request,
        memory: &memory,
        begin: Instant::now(),
        report: AttachReport::default(),
        held,
        plan: None,
        installed: None,
    };
    match attaching.run(while_stopped) {
        Ok(()) => Ok(attaching.report),
        Err(error) => {
            attaching.give_up();
            Err(protection::explained(pid, error))
        }
    }
}

/// State of an attach in progress.
struct Attaching<'a> {
    request: &'a AttachRequest<'a>,
    memory: &'a ProcessMemory,
    begin: Instant,
    report: AttachReport,
    /// The held program, if it is stopped already.
    held: Option<HeldExec>,
    plan: Option<Plan>,
    /// Installed hooks; between two tries their gate leads calls around the agent.
    installed: Option<Installed>,
}

enum Outcome {
    Done,
    Again { reason: &'static str },
    Runs(Restless),
}

impl Attaching<'_> {
    fn run(&mut self, while_stopped: &mut (dyn FnMut(&Standstill) + Send)) -> Result<()> {
        let pid = self.request.pid;
        loop {
            self.report.try_count += 1;
            let plan = match self.plan.take() {
                Some(plan) => plan,
                None => {
                    // An agent whose recorder is gone prevents a new one.
                    self.report.orphan_bytes_left += orphan::clear(pid, self.memory)?;
                    Plan::make(self.request, self.memory, self.held.is_some())?
                }
            };
            let elapsed = self.begin.elapsed();
            match self.try_once(plan, while_stopped)? {
                Outcome::Done => return Ok(()),
                Outcome::Again { reason } if elapsed > LIMIT => {
                    let reason = reason.to_owned();
                    return Err(Error::NoQuietMoment { pid, seconds: elapsed.as_secs(), reason });
                }
                Outcome::Runs(restless)
                    if elapsed > BUSY_LIMIT || elapsed > LIMIT && !restless.waits_for_processor() =>
                {
                    return Err(restless.no_moment(elapsed));
                }
                _ => {}
            }
            std::thread::sleep(PAUSE_BETWEEN);
        }
    }

    /// Makes one try: stops the target once.
    fn try_once(
        &mut self,
        mut plan: Plan,
        while_stopped: &mut (dyn FnMut(&Standstill) + Send),
    ) -> Result<Outcome> {
        let (pid, memory) = (self.request.pid, self.memory);
        let memory_error = |source| Error::Memory { pid, source };
        let has_filters = self.installed.is_none() && seccomp::has_any(pid);
        let mut parts = PauseParts::default();
        let mut stopwatch = Stopwatch::start();
        let mut stopped = match Stopped::stop(pid, self.held.take(), STOP_LIMIT)? {
            Ok(stopped) => stopped,
            Err(restless) => {
                self.plan = Some(plan);
                return Ok(Outcome::Runs(restless));
            }
        };
        parts.stop = stopwatch.lap();
        if has_filters {
            let tids = stopped.threads.iter().map(|thread| thread.tid);
            match seccomp::check(pid, tids, &[seccomp::OF_AGENT, seccomp::OF_ATTACH]) {
                Err(Error::SeccompUnreadable { .. }) if self.request.despite_seccomp => {}
                outcome => outcome?,
            }
        }
        let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
        if let Some(installed) = &self.installed {
            installed.gate.close(memory).map_err(memory_error)?;
        } else {
            let outcome = self.install(&mut plan, &mut stopped, &mappings, &mut parts, &mut stopwatch);
            match outcome? {
                Outcome::Done => {}
                again => {
                    self.report.pause = self.report.pause.max(stopped.resume());
                    return Ok(again);
                }
            }
        }
        let Some(installed) = &self.installed else { return Err(Error::Ended { pid }) };
        let settled = stopped.settle(SETTLE_LIMIT, |thread| {
            thread_place::is_in_allocator(&plan.code, &installed.gate, memory, &mappings, thread)
        })?;
        parts.settle += stopwatch.lap();
        let is_quiet = settled == Settled::Quiet;
        let is_too_late = self.begin.elapsed() > ALLOCATOR_LIMIT;
        let may_go_on = is_quiet || is_too_late && settled == Settled::Busy;
        if !may_go_on {
            installed.gate.lead_around(memory).map_err(memory_error)?;
            self.report.pause = self.report.pause.max(stopped.resume());
            self.plan = Some(plan);
            return Ok(match settled {
                Settled::Runs(restless) => Outcome::Runs(restless),
                _ => Outcome::Again { reason: "a thread was in the allocator at each try" },
            });
        }
        let still = Standstill {
            pid,
            thread_pointers: stopped.threads.iter().map(|thread| thread.registers.thread_pointer()).collect(),
            is_allocator_quiet: is_quiet,
        };
        let let_go = || {
            // Before the threads run, because the gate will not be opened.
            let _ = installed.gate.lead_around(memory);
            stopped.release();
        };
        look_in_time(None, || while_stopped(&still), let_go)
            .map_err(|late| Error::ReadWaits { pid, waited_ms: late.after.as_millis() as u64 })?;
        parts.read_heap = stopwatch.lap();
        installed.gate.open(memory, &installed.trampolines).map_err(memory_error)?;
        parts.install += stopwatch.lap();
        self.report.was_allocator_busy = !is_quiet;
        self.report.thread_count = stopped.threads.len();
        self.report.module_count = plan.modules.list.len();
        self.report.pause = self.report.pause.max(stopped.resume());
        parts.resume = stopwatch.lap();
        self.report.parts = parts;
        Ok(Outcome::Done)
    }

    /// Installs the hooks, with the gate closed.
    fn install(
        &mut self,
        plan: &mut Plan,
        stopped: &mut Stopped,
        mappings: &[Mapping],
        parts: &mut PauseParts,
        stopwatch: &mut Stopwatch,
    ) -> Result<Outcome> {
        let (pid, memory) = (self.request.pid, self.memory);
        let settled = stopped.settle(SETTLE_LIMIT, |thread| {
            let prologues: Vec<_> = plan.hooks.iter().map(|hook| &hook.prologue).collect();
            thread_place::is_in_prologue(&prologues, memory, mappings, thread)
        })?;
        parts.settle += stopwatch.lap();
        match settled {
            Settled::Quiet => {}
            Settled::Runs(restless) => return Ok(Outcome::Runs(restless)),
            Settled::Busy => {
                return Ok(Outcome::Again {
                    reason: "a thread was at the entry of the allocator at each try",
                });
            }
        }
        if !plan.modules.is_consistent(memory) {
            return Ok(Outcome::Again { reason: "a thread was loading a library at each try" });
        }
        if !plan.modules.is_unchanged(memory) {
            return Ok(Outcome::Again { reason: "libraries were loaded all the time" });
        }
        // The threads that ran on may have changed the mappings.
        let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
        let Some(&thread) = thread_place::choose_thread(memory, &mappings, &stopped.threads) else {
            return Ok(Outcome::Again { reason: "no thread has room on its stack" });
        };
        parts.check = stopwatch.lap();
        let target = StoppedTarget { memory, mappings: &mappings, stopped };
        let installed = install(self.request, target, plan, &thread, &mut self.report)?;
        self.installed = Some(installed);
        parts.install = stopwatch.lap();
        Ok(Outcome::Done)
    }

    /// Removes everything installed so far.
    fn give_up(&mut self) {
        if let Some(Installed { gate, record, .. }) = self.installed.take() {
            let pid = self.request.pid;
            // The process may have ended.
            let _ = gate.lead_around(self.memory);
            let _ = removal::remove(pid, self.memory, &record, removal::Whose::Own, &mut || ());
        }
    }
}
