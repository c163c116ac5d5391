//! Stopping all threads of a process, and letting them go on.
//!
//! ```text
//! seize, interrupt each thread in /proc/PID/task, until a look shows none that is not seized
//! wait until each has stopped; a signal that is just being delivered is delivered first
//! ...
//! detach (also when dropped): each goes on as if nothing had been
//! ```

use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::exec_stop::HeldExec;
use crate::ptrace::{self, Event};
use crate::target;
use crate::x86_64::Registers;

/// A thread that stands still.
#[derive(Debug, Clone, Copy)]
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
}

#[derive(Debug, Clone, Copy)]
struct Seized {
    tid: u32,
    since: Instant,
    is_stopped: bool,
}

/// A wait looks again after this long: a thread on a processor stops within microseconds.
const POLL: Duration = Duration::from_micros(30);

impl Stopped {
    /// Stops all threads but one that stands still already. `Ok(None)`: some did not stop in `limit` (one waits for a child made by vfork, or for a disk);
    /// all go on.
    pub(crate) fn stop(pid: u32, held: Option<HeldExec>, limit: Duration) -> Result<Option<Self>> {
        let deadline = Instant::now() + limit;
        let mut stopped = Self { pid, threads: Vec::new(), seized: Vec::new(), pause: Duration::ZERO };
        if let Some(tid) = held.map(HeldExec::into_stopped) {
            stopped.seized.push(Seized { tid, since: Instant::now(), is_stopped: true });
        }
        loop {
            let is_any_new = stopped.seize_new()?;
            while !stopped.wait_once()? {
                if Instant::now() > deadline {
                    return Ok(None);
                }
                std::thread::sleep(POLL);
            }
            if !is_any_new {
                break;
            }
        }
        if stopped.seized.is_empty() {
            return Err(Error::Ended { pid });
        }
        stopped.read_registers()?;
        Ok(Some(stopped))
    }

    fn read_registers(&mut self) -> Result<()> {
        let pid = self.pid;
        self.threads.clear();
        for seized in &self.seized {
            let tid = seized.tid;
            match ptrace::registers(tid) {
                Ok(registers) => self.threads.push(StoppedThread { tid, registers }),
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
    fn seize_new(&mut self) -> Result<bool> {
        let pid = self.pid;
        let mut is_any_new = false;
        for tid in target::threads(pid)? {
            if self.seized.iter().any(|seized| seized.tid == tid) {
                continue;
            }
            if let Err(source) = ptrace::seize(tid) {
                let has_ended = matches!(target::thread_state(pid, tid), None | Some('Z' | 'X'));
                match source.raw_os_error() {
                    _ if has_ended => continue,
                    Some(libc::EPERM) => return Err(target::not_permitted(pid)),
                    Some(libc::ESRCH) => continue,
                    _ => return Err(Error::Trace { pid, call: "PTRACE_SEIZE", source }),
                }
            }
            let since = Instant::now();
            self.seized.push(Seized { tid, since, is_stopped: false });
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
                // The interrupt is still pending: it stops again before it runs any code of the program.
                Some(Event::Signal(signal)) => drop(ptrace::go_on(seized.tid, signal)),
                Some(Event::SystemCall | Event::Executed) => drop(ptrace::go_on(seized.tid, 0)),
            }
        }
        self.seized.retain(|seized| !has_ended.contains(&seized.tid));
        Ok(self.seized.iter().all(|seized| seized.is_stopped))
    }

    /// Lets the threads that `is_busy` says are in the way run for a moment, while all others stand still, until none is.
    /// `Ok(false)`: some still are when the time is up.
    pub(crate) fn settle(
        &mut self,
        limit: Duration,
        mut is_busy: impl FnMut(&StoppedThread) -> bool,
    ) -> Result<bool> {
        /// Longer than any call of an allocator takes on a processor.
        const MOMENT: Duration = Duration::from_micros(60);
        /// More threads at a time than processors would not get anywhere in a moment.
        const TOGETHER: usize = 2;
        let deadline = Instant::now() + limit;
        loop {
            let busy: Vec<u32> =
                self.threads.iter().filter(|thread| is_busy(thread)).map(|thread| thread.tid).collect();
            // What they did meanwhile may have made threads.
            if busy.is_empty() && !self.seize_new()? {
                return Ok(true);
            }
            // Those that wait in the kernel may wait for a lock that one of the others holds.
            let (waiting, running): (Vec<u32>, Vec<u32>) =
                busy.iter().partition(|&&tid| self.is_in_call(tid));
            let busy = if running.is_empty() { waiting } else { running };
            for group in busy.chunks(TOGETHER) {
                if Instant::now() > deadline {
                    return Ok(false);
                }
                self.run_for(group, MOMENT);
                if !self.wait_until(deadline + limit)? {
                    return Ok(false);
                }
            }
            if !self.wait_until(deadline + limit)? {
                return Ok(false);
            }
            self.read_registers()?;
        }
    }

    fn is_in_call(&self, tid: u32) -> bool {
        self.threads.iter().any(|thread| thread.tid == tid && thread.registers.system_call().is_some())
    }

    /// Lets some of the stopped threads run.
    fn run_for(&mut self, group: &[u32], moment: Duration) {
        for seized in self.seized.iter_mut().filter(|seized| group.contains(&seized.tid)) {
            self.pause = self.pause.max(seized.since.elapsed());
            seized.is_stopped = false;
            drop(ptrace::go_on(seized.tid, 0));
        }
        std::thread::sleep(moment);
        for seized in self.seized.iter_mut().filter(|seized| group.contains(&seized.tid)) {
            seized.since = Instant::now();
            drop(ptrace::interrupt(seized.tid));
        }
    }

    fn wait_until(&mut self, deadline: Instant) -> Result<bool> {
        while !self.wait_once()? {
            if Instant::now() > deadline {
                return Ok(false);
            }
            std::thread::sleep(POLL);
        }
        Ok(true)
    }

    /// Lets all go on. Returns the longest time that one stood still.
    pub(crate) fn resume(mut self) -> Duration {
        self.release();
        self.pause
    }

    fn release(&mut self) {
        // Those that still run must stop before they can be let go: what they report is awaited for a short time. Should
        // one not come it stays traced until this process ends, and runs on.
        let deadline = Instant::now() + Duration::from_secs(1);
        while !self.seized.iter().all(|seized| seized.is_stopped) && Instant::now() < deadline {
            // Those that stand still are let go at once.
            for seized in self.seized.extract_if_stopped() {
                drop(ptrace::detach(seized.tid));
                self.pause = self.pause.max(seized.since.elapsed());
            }
            if !matches!(self.wait_once(), Ok(false)) {
                break;
            }
            std::thread::sleep(POLL);
        }
        for seized in std::mem::take(&mut self.seized) {
            drop(ptrace::detach(seized.tid));
            self.pause = self.pause.max(seized.since.elapsed());
        }
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
