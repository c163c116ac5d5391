//! Stop and resumption of all threads of a process.
//!
//! ```text
//! seize, interrupt each thread in /proc/PID/task, until a listing shows only seized threads
//! wait until each has stopped; a signal that is being delivered is delivered first
//! ...
//! detach (also when dropped): each thread resumes as if nothing had happened
//! ```

use std::time::{Duration, Instant};

use crate::arch::{Registers, is_on_loan};
use crate::broken_call::{BrokenCall, Sleepers};
use crate::error::{Error, Result};
use crate::exec_stop::HeldExec;
use crate::memory::ProcessMemory;
use crate::ptrace::{self, Event};
use crate::restless::{LONGER_FOR_PROCESSOR, Restless};
use crate::seizing::{Seizing, seize};
use crate::target;
use crate::urgency::Urgency;

/// A stopped thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoppedThread {
    pub(crate) tid: u32,
    pub(crate) registers: Registers,
}

/// All threads of a process, stopped until this is dropped.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) pid: u32,
    pub(crate) threads: Vec<StoppedThread>,
    seized: Vec<Seized>,
    pause: Duration,
    /// Memory for restarting the calls that the stop interrupts; `None` if it may not be opened.
    memory: Option<ProcessMemory>,
    sleepers: Sleepers,
    _urgency: Urgency,
}

/// Result of waiting for threads to leave critical code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// No thread is in critical code.
    Quiet,
    /// Some threads are in critical code.
    Busy,
    /// One thread did not stop again in time and runs; the state of the others is unknown.
    Runs(Restless),
}

#[derive(Debug, Clone, Copy)]
struct Seized {
    tid: u32,
    since: Instant,
    is_stopped: bool,
    /// Call that is restarted when the thread resumes.
    broken: Option<BrokenCall>,
}

/// Longest time for the threads to stop for a detach.
pub(crate) const DETACH_STOP_LIMIT: Duration = Duration::from_millis(200);
/// Interval of polls: a thread on a processor stops within microseconds.
const POLL: Duration = Duration::from_micros(30);

impl Stopped {
    /// Stops all threads, except one that is stopped already. `Ok(Err(…))`: a thread did not stop
    /// within `limit`, and all resume.
    pub(crate) fn stop(
        pid: u32,
        held: Option<HeldExec>,
        limit: Duration,
    ) -> Result<std::result::Result<Self, Restless>> {
        // These are read before the process is stopped.
        let (memory, sleepers) = (ProcessMemory::open(pid).ok(), Sleepers::of(pid));
        let deadline = Instant::now() + limit;
        let (threads, seized) = (Vec::new(), Vec::new());
        let pause = Duration::ZERO;
        let mut stopped = Self { pid, threads, seized, pause, memory, sleepers, _urgency: Urgency::begin() };
        if let Some(tid) = held.map(HeldExec::into_stopped) {
            stopped.seized.push(Seized { tid, since: Instant::now(), is_stopped: true, broken: None });
        }
        loop {
            let is_any_new = stopped.seize_new(deadline)?;
            if let Some(restless) = stopped.wait_until(deadline, limit)? {
                return Ok(Err(restless));
            }
            if !is_any_new {
                break;
            }
        }
        if stopped.seized.is_empty() {
            return Err(Error::Ended { pid });
        }
        stopped.read_registers()?;
        match stopped.wait_for_loans()? {
            None => Ok(Ok(stopped)),
            Some(restless) => Ok(Err(restless)),
        }
    }

    /// Lets threads that a killed process had borrowed finish. Returns one that has not.
    fn wait_for_loans(&mut self) -> Result<Option<Restless>> {
        /// Longest duration of the calls that such threads still have to make.
        const LIMIT: Duration = Duration::from_millis(10);
        let pid = self.pid;
        let Ok(memory) = ProcessMemory::open(pid) else { return Ok(None) };
        let is_on_loan = |thread: &StoppedThread| is_on_loan(&memory, &thread.registers);
        if !self.threads.iter().any(is_on_loan) {
            return Ok(None);
        }
        Ok(match self.settle(LIMIT, is_on_loan)? {
            Settled::Quiet => None,
            Settled::Runs(restless) => Some(restless),
            Settled::Busy => {
                let on_loan = self.threads.iter().find(|thread| is_on_loan(thread));
                on_loan.and_then(|thread| Restless::of(pid, thread.tid))
            }
        })
    }

    fn read_registers(&mut self) -> Result<()> {
        let pid = self.pid;
        self.threads.clear();
        for seized in &mut self.seized {
            let tid = seized.tid;
            match ptrace::registers(tid) {
                // A kernel thread is in no critical code, and cannot be borrowed.
                Ok(registers) if registers.is_of_kernel() => {}
                Ok(mut registers) => {
                    self.sleepers.note(pid, tid, &mut registers);
                    if let Some(memory) = &self.memory {
                        let broken = BrokenCall::mend(pid, tid, &mut registers, memory, &self.sleepers);
                        seized.broken = broken.or(seized.broken);
                    }
                    self.threads.push(StoppedThread { tid, registers });
                }
                // The thread was killed while it was stopped.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(source) => return Err(Error::Trace { pid, call: "PTRACE_GETREGS", source }),
            }
        }
        if self.threads.is_empty() {
            return Err(Error::Ended { pid });
        }
        Ok(())
    }

    /// Seizes threads that are not seized yet. Returns whether there were any.
    fn seize_new(&mut self, deadline: Instant) -> Result<bool> {
        let pid = self.pid;
        let mut is_any_new = false;
        for tid in target::threads(pid)? {
            if self.seized.iter().any(|seized| seized.tid == tid) {
                continue;
            }
            match seize(pid, tid, deadline)? {
                Seizing::Done => {}
                Seizing::Ended => continue,
                Seizing::Later => {
                    is_any_new = true;
                    std::thread::sleep(POLL);
                    continue;
                }
            }
            let since = Instant::now();
            self.seized.push(Seized { tid, since, is_stopped: false, broken: None });
            is_any_new = true;
            match ptrace::interrupt(tid) {
                Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                    return Err(Error::Trace { pid, call: "PTRACE_INTERRUPT", source: error });
                }
                _ => {}
            }
        }
        Ok(is_any_new)
    }

    /// Reads all reported events. Returns whether all threads are stopped.
    fn wait_once(&mut self) -> Result<bool> {
        let pid = self.pid;
        let mut has_ended = Vec::new();
        for seized in self.seized.iter_mut().filter(|seized| !seized.is_stopped) {
            let event =
                ptrace::poll(seized.tid).map_err(|source| Error::Trace { pid, call: "waitpid", source })?;
            match event {
                None => {}
                Some(Event::Ended) => has_ended.push(seized.tid),
                Some(Event::Interrupted) => seized.is_stopped = true,
                // The interrupt is still pending: the thread stops again before it runs any code of
                // the program.
                Some(Event::Signal(signal)) => drop(ptrace::go_on(seized.tid, signal)),
                Some(Event::SystemCall | Event::Executed | Event::Cloned) => {
                    drop(ptrace::go_on(seized.tid, 0));
                }
            }
        }
        self.seized.retain(|seized| !has_ended.contains(&seized.tid));
        Ok(self.seized.iter().all(|seized| seized.is_stopped))
    }

    /// Lets the threads for which `is_busy` is true run for a moment, while all others are stopped,
    /// and repeats until no thread is busy.
    ///
    /// Afterwards all threads are stopped and `threads` is up to date, unless the result is
    /// [`Settled::Runs`].
    pub(crate) fn settle(
        &mut self,
        limit: Duration,
        mut is_busy: impl FnMut(&StoppedThread) -> bool,
    ) -> Result<Settled> {
        /// First duration of a round, longer than most calls of an allocator.
        const MOMENT: Duration = Duration::from_micros(25);
        /// Smallest number of rounds within the limit.
        const MOMENTS_IN_LIMIT: u32 = 8;
        /// Number of rounds without any change after which the threads are assumed to be blocked.
        const STILL_ROUNDS: u32 = 8;
        let processor_count = std::thread::available_parallelism().map_or(1, usize::from);
        let deadline = Instant::now() + limit;
        let (mut round_count, mut still_count) = (0_u32, 0);
        let mut busy_before = Vec::new();
        loop {
            let busy: Vec<StoppedThread> =
                self.threads.iter().filter(|thread| is_busy(thread)).copied().collect();
            if busy.is_empty() {
                // The threads that ran may have created others.
                if !self.seize_new(deadline)? {
                    return Ok(Settled::Quiet);
                }
            } else {
                // All are in the kernel, and where they were before: they wait for other stopped
                // threads or an event.
                let is_still =
                    busy.iter().all(|thread| thread.registers.system_call().is_some()) && busy == busy_before;
                still_count = if is_still { still_count + 1 } else { 0 };
                if Instant::now() > deadline || still_count >= STILL_ROUNDS {
                    return Ok(Settled::Busy);
                }
                let share = u32::try_from(busy.len().div_ceil(processor_count)).unwrap_or(u32::MAX);
                let moment = MOMENT.saturating_mul(share).saturating_mul(1 << round_count.min(5));
                self.run_for(&busy, moment.min(limit / MOMENTS_IN_LIMIT));
                round_count += 1;
            }
            if let Some(restless) = self.wait_until(deadline + limit, limit)? {
                return Ok(Settled::Runs(restless));
            }
            self.read_registers()?;
            busy_before = busy;
        }
    }

    /// Lets some of the stopped threads run for a moment.
    fn run_for(&mut self, group: &[StoppedThread], moment: Duration) {
        let is_of_group = |seized: &&mut Seized| group.iter().any(|thread| thread.tid == seized.tid);
        for seized in self.seized.iter_mut().filter(is_of_group) {
            self.pause = self.pause.max(seized.since.elapsed());
            seized.is_stopped = false;
            seized.broken = None;
            drop(ptrace::go_on(seized.tid, 0));
        }
        std::thread::sleep(moment);
        for seized in self.seized.iter_mut().filter(is_of_group) {
            seized.since = Instant::now();
            drop(ptrace::interrupt(seized.tid));
        }
    }

    /// Waits until all threads are stopped, up to `deadline`, or for some time more if only a
    /// processor is missing. Returns a thread that does not stop.
    fn wait_until(&mut self, deadline: Instant, limit: Duration) -> Result<Option<Restless>> {
        let last = deadline + limit * (LONGER_FOR_PROCESSOR - 1);
        while !self.wait_once()? {
            let now = Instant::now();
            if now > deadline {
                let mut running = self.seized.iter().filter(|seized| !seized.is_stopped);
                let restless = running.find_map(|seized| {
                    let restless = Restless::of(self.pid, seized.tid)?;
                    (now > last || !restless.waits_for_processor()).then_some(restless)
                });
                if restless.is_some() {
                    return Ok(restless);
                }
            }
            std::thread::sleep(POLL);
        }
        Ok(None)
    }

    /// Resumes all threads. Returns the longest time for which one was stopped.
    pub(crate) fn resume(mut self) -> Duration {
        self.release();
        self.pause
    }

    /// Resumes all threads, and empties the list of stopped ones.
    pub(crate) fn release(&mut self) {
        // A running thread must stop before its release, so that its event is awaited for a short
        // time. Without an event it stays traced until this thread ends ([`crate::own_thread`]). It
        // runs on meanwhile, or stays stopped after its event.
        let deadline = Instant::now() + Duration::from_secs(1);
        while !self.seized.iter().all(|seized| seized.is_stopped) && Instant::now() < deadline {
            // Stopped threads are released at once.
            for seized in self.seized.extract_if_stopped() {
                self.let_go(&seized);
            }
            if !matches!(self.wait_once(), Ok(false)) {
                break;
            }
            std::thread::sleep(POLL);
        }
        for seized in std::mem::take(&mut self.seized) {
            self.let_go(&seized);
        }
    }

    fn let_go(&mut self, seized: &Seized) {
        let tid = seized.tid;
        if let Some(memory) = &self.memory {
            match (seized.broken, ptrace::registers(tid)) {
                (Some(broken), _) => broken.renew(tid, memory),
                // A thread that has stopped since the others' registers were read.
                (None, Ok(mut registers)) => {
                    let _ = BrokenCall::mend(self.pid, tid, &mut registers, memory, &self.sleepers);
                }
                (None, Err(_)) => {}
            }
        }
        drop(ptrace::detach(tid));
        self.pause = self.pause.max(seized.since.elapsed());
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.release();
    }
}

trait ExtractStopped {
    fn extract_if_stopped(&mut self) -> Vec<Seized>;
}

impl ExtractStopped for Vec<Seized> {
    fn extract_if_stopped(&mut self) -> Vec<Seized> {
        let (stopped, running) = std::mem::take(self).into_iter().partition(|seized| seized.is_stopped);
        *self = running;
        stopped
    }
}
