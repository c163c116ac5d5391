//! Stopping all threads of a process, and letting them go on.
//!
//! ```text
//! seize, interrupt each thread in /proc/PID/task, until a look shows none that is not seized
//! wait until each has stopped; a signal that is just being delivered is delivered first
//! ...
//! detach (also when dropped): each goes on as if nothing had been
//! ```

use std::time::{Duration, Instant};

use crate::broken_call::{BrokenCall, Sleepers};
use crate::error::{Error, Result};
use crate::exec_stop::HeldExec;
use crate::loan::is_on_loan;
use crate::memory::ProcessMemory;
use crate::ptrace::{self, Event};
use crate::restless::{LONGER_FOR_PROCESSOR, Restless};
use crate::seizing::{Seizing, seize};
use crate::target;
use crate::urgency::Urgency;
use crate::x86_64::Registers;

/// A thread that stands still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoppedThread {
    pub(crate) tid: u32,
    pub(crate) registers: Registers,
}

/// All threads of a process, standing still until this is dropped.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) pid: u32,
    pub(crate) threads: Vec<StoppedThread>,
    seized: Vec<Seized>,
    pause: Duration,
    /// To mend the calls that the stop breaks off; `None`: it may not be opened.
    memory: Option<ProcessMemory>,
    sleepers: Sleepers,
    _urgency: Urgency,
}

/// What became of threads that were in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// None is.
    Quiet,
    /// Some are.
    Busy,
    /// One did not stop again in time: nothing is known, and it runs.
    Runs(Restless),
}

#[derive(Debug, Clone, Copy)]
struct Seized {
    tid: u32,
    since: Instant,
    is_stopped: bool,
    /// What is made again when it goes on.
    broken: Option<BrokenCall>,
}

/// How long the threads may take to stop for a detach.
pub(crate) const DETACH_STOP_LIMIT: Duration = Duration::from_millis(200);
/// A wait looks again after this long: a thread on a processor stops within microseconds.
const POLL: Duration = Duration::from_micros(30);

impl Stopped {
    /// Stops all threads but one that stands still already. `Ok(Err(…))`: one did not stop in
    /// `limit`; all go on.
    pub(crate) fn stop(
        pid: u32,
        held: Option<HeldExec>,
        limit: Duration,
    ) -> Result<std::result::Result<Self, Restless>> {
        // Before it stands still.
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

    /// Has threads come home that somebody who was killed has borrowed. One that has not.
    fn wait_for_loans(&mut self) -> Result<Option<Restless>> {
        /// What a call takes at the most, which they still have before them.
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
                // In nobody's way, and of no use.
                Ok(registers) if registers.is_of_kernel() => {}
                Ok(mut registers) => {
                    if let Some(memory) = &self.memory {
                        let broken = BrokenCall::mend(pid, tid, &mut registers, memory, &self.sleepers);
                        seized.broken = broken.or(seized.broken);
                    }
                    self.threads.push(StoppedThread { tid, registers });
                }
                // Killed while it stood still.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(source) => return Err(Error::Trace { pid, call: "PTRACE_GETREGS", source }),
            }
        }
        if self.threads.is_empty() {
            return Err(Error::Ended { pid });
        }
        Ok(())
    }

    /// Seizes threads that are not yet. Whether there were any.
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

    /// Takes what has been reported. Whether all stand still.
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
                // The interrupt is still pending: it stops again before it runs any code of the
                // program.
                Some(Event::Signal(signal)) => drop(ptrace::go_on(seized.tid, signal)),
                Some(Event::SystemCall | Event::Executed | Event::Cloned) => {
                    drop(ptrace::go_on(seized.tid, 0));
                }
            }
        }
        self.seized.retain(|seized| !has_ended.contains(&seized.tid));
        Ok(self.seized.iter().all(|seized| seized.is_stopped))
    }

    /// Lets the threads that `is_busy` says are in the way run for a moment, while all others stand
    /// still, until none is.
    ///
    /// Afterwards all stand still and `threads` says where, unless it is [`Settled::Runs`].
    pub(crate) fn settle(
        &mut self,
        limit: Duration,
        mut is_busy: impl FnMut(&StoppedThread) -> bool,
    ) -> Result<Settled> {
        /// Longer than most calls of an allocator take on a processor.
        const MOMENT: Duration = Duration::from_micros(25);
        /// Some rounds must fit into the limit.
        const MOMENTS_IN_LIMIT: u32 = 8;
        /// Rounds in which nothing moves before it is believed that nothing will.
        const STILL_ROUNDS: u32 = 8;
        let processor_count = std::thread::available_parallelism().map_or(1, usize::from);
        let deadline = Instant::now() + limit;
        let (mut round_count, mut still_count) = (0_u32, 0);
        let mut busy_before = Vec::new();
        loop {
            let busy: Vec<StoppedThread> =
                self.threads.iter().filter(|thread| is_busy(thread)).copied().collect();
            if busy.is_empty() {
                // What they did meanwhile may have made threads.
                if !self.seize_new(deadline)? {
                    return Ok(Settled::Quiet);
                }
            } else {
                // In the kernel, and where they were before: they wait for something that does not
                // come now.
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

    /// Lets some of the stopped threads run.
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

    /// Waits until all stand still, to the end of a `limit`, or for some time more if all that is
    /// missing is a processor. One that does not.
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

    /// Lets all go on. Returns the longest time that one stood still.
    pub(crate) fn resume(mut self) -> Duration {
        self.release();
        self.pause
    }

    /// Lets all go on; who has it finds nothing stopped any more.
    pub(crate) fn release(&mut self) {
        // Those that still run must stop before they can be let go: what they report is awaited for
        // a short time. Should one not come it stays traced until this thread ends
        // ([`crate::own_thread`]), and runs on, or stands still when it comes.
        let deadline = Instant::now() + Duration::from_secs(1);
        while !self.seized.iter().all(|seized| seized.is_stopped) && Instant::now() < deadline {
            // Those that stand still are let go at once.
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
                // One that has stopped since the others' registers were read.
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
