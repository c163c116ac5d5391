//! Removal of an agent, over several stops of the process; see [`crate::detach`].

use std::time::{Duration, Instant};

use heapr_proc::Mapping;
use heapr_wire::CLOCK_STOPPED;

use crate::allocator_code::is_in;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::memory::{ProcessMemory, TargetMemory as _, Unreachable};
use crate::modules::Modules;
use crate::record::Record;
use crate::remote::{Borrowed, Gadgets};
use crate::report::{DetachReport, PauseParts, Stopwatch};
use crate::return_chain::ReturnChains;
use crate::stop::{DETACH_STOP_LIMIT, Settled, Stopped, StoppedThread};
use crate::take_away::{Remains, restore};
use crate::thread_place::AgentCalls;
use crate::{seccomp, take_away, thread_place};

/// Longest time for threads to leave the agent.
const LIMIT: Duration = Duration::from_secs(5);
const SETTLE_LIMIT: Duration = Duration::from_millis(30);
/// Settling time of the first tries: enough for 64 threads on two processors, each of which leaves
/// an allocator (3 ms). Threads that wait for a buffer get it only when the target runs, and no
/// other threads enter the agent then.
const SETTLE_LIMIT_AT_FIRST: Duration = Duration::from_millis(8);
const FIRST_TRIES: u32 = 4;
/// Smallest number of tries, however long each takes: on a busy machine threads leave the agent
/// slowly.
const TRIES_MIN: u32 = 40;
/// Pause between two tries: the first, doubled each time up to the second.
const PAUSE_BETWEEN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(80));

/// Origin of the agent that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// This process's own agent.
    Own,
    /// Agent of a killed process, perhaps killed while removing it.
    Orphan,
}

pub(crate) fn remove(
    pid: u32,
    memory: &ProcessMemory,
    record: &Record,
    whose: Whose,
    between_tries: &mut dyn FnMut(),
) -> Result<DetachReport> {
    let mut removal = Removal::new(pid, memory, record, whose)?;
    let was_left = take_away::was_left(memory, record);
    let mut has_looked = false;
    let mut pause = PAUSE_BETWEEN.0;
    let begin = Instant::now();
    loop {
        removal.report.try_count += 1;
        match removal.attempt()? {
            Attempt::Over => return Ok(removal.report),
            Attempt::Forbidden => return removal.leave_agent(),
            Attempt::IsTakenAway if begin.elapsed() > LIMIT => return Ok(removal.left()),
            Attempt::IsTakenAway => {
                std::thread::sleep(PAUSE_BETWEEN.0);
                continue;
            }
            Attempt::Changed => {
                has_looked = true;
                continue;
            }
            Attempt::Busy => has_looked = true,
            Attempt::Restless => {}
        }
        // An agent that was left behind earlier no longer delays any thread.
        if was_left && has_looked {
            return Ok(removal.left());
        }
        if begin.elapsed() > LIMIT && removal.report.try_count >= TRIES_MIN {
            return removal.leave_agent();
        }
        between_tries();
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_BETWEEN.1);
    }
}

/// Outcome of a try.
enum Attempt {
    /// The agent is gone.
    Over,
    /// A thread that a killed process had borrowed takes the agent away.
    IsTakenAway,
    /// Another thread took the agent away while threads left it.
    Changed,
    /// Threads are in the agent.
    Busy,
    /// The threads could not be stopped.
    Restless,
    /// A seccomp filter forbids the calls that remove the agent.
    Forbidden,
}

/// Agent that is being removed from a process.
struct Removal<'a> {
    pid: u32,
    memory: &'a ProcessMemory,
    record: &'a Record,
    whose: Whose,
    gadgets: Gadgets,
    gate: Gate,
    calls: AgentCalls<'a>,
    /// Ranges of the trampolines.
    islands: Vec<(u64, u64)>,
    /// Ranges of the trampolines and of the agent.
    ours: Vec<(u64, u64)>,
    chains: ReturnChains<'a>,
    /// Calls may reach the agent.
    is_hooked: bool,
    /// The overwritten bytes are restored, and no thread is in the agent.
    is_restored: bool,
    report: DetachReport,
}

impl<'a> Removal<'a> {
    fn new(pid: u32, memory: &'a ProcessMemory, record: &'a Record, whose: Whose) -> Result<Self> {
        let gadgets = crate::plan::gadgets(pid, memory)?;
        let agent = (record.start_avma, record.start_avma.wrapping_add(record.bytes));
        let islands = record.islands.iter().map(|&(start, bytes)| (start, start.wrapping_add(bytes)));
        let islands: Vec<(u64, u64)> = islands.collect();
        Ok(Self {
            pid,
            memory,
            record,
            whose,
            gadgets,
            gate: Gate::of(record),
            calls: AgentCalls {
                agent,
                code: &record.code,
                others: functions_besides(pid, memory, record)?,
                sigreturn_avma: gadgets.sigreturn_avma,
            },
            ours: islands.iter().copied().chain([agent]).collect(),
            islands,
            chains: ReturnChains::new(memory),
            is_hooked: true,
            is_restored: false,
            report: DetachReport {
                process_slot: record.process_slot as u32,
                process_generation: record.process_generation as u32,
                ..DetachReport::default()
            },
        })
    }

    fn attempt(&mut self) -> Result<Attempt> {
        let (pid, memory, record, agent) = (self.pid, self.memory, self.record, self.calls.agent);
        let settle_limit = self.settle_limit();
        let mut parts = PauseParts::default();
        let mut stopwatch = Stopwatch::start();
        let Ok(mut stopped) = Stopped::stop(pid, None, DETACH_STOP_LIMIT)? else {
            return Ok(Attempt::Restless);
        };
        parts.stop = stopwatch.lap();
        match Remains::of(memory, record) {
            Remains::All => {}
            // A thread that a killed process had borrowed has removed the agent.
            Remains::Nothing => return Ok(Attempt::Over),
            Remains::IsTakenAway => {
                let is_at_it = |thread: &_| thread_place::is_on_way_through(agent, thread);
                stopped.settle(settle_limit, is_at_it)?;
                stopped.resume();
                return Ok(Attempt::IsTakenAway);
            }
        }
        self.report.thread_count = stopped.threads.len();
        let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
        self.chains.forget();
        // If the gate no longer stops all calls, the allocator of a busy program is never
        // quiet. The remaining jumps are removed too, so that threads leave the agent.
        if self.whose == Whose::Orphan && self.is_hooked && !take_away::stands(memory, record) {
            self.report.hooks_removed += restore(pid, memory, record)?;
            self.is_hooked = false;
        }
        if !self.is_restored && !self.close_agent(&mut stopped, &mappings, settle_limit)? {
            return Ok(Attempt::Changed);
        }
        let settled = match self.is_restored {
            // All threads had left the agent, and no path has led there since; stale addresses
            // on their stacks do not matter.
            true => stopped.settle(settle_limit, |thread| {
                let left = self.gate.waited_avmas();
                thread_place::may_return_to(&self.islands, &left, memory, &mappings, thread)
                    && !self.chains.lead_around(&self.ours, &mappings, thread)
            })?,
            false => Settled::Busy,
        };
        parts.settle = stopwatch.lap();
        let thread = thread_place::choose_thread(memory, &mappings, &stopped.threads).copied();
        if settled == Settled::Quiet
            && let Some(thread) = thread
        {
            return self.take_away(stopped, &thread, parts, stopwatch);
        }
        self.report.pause = self.report.pause.max(stopped.resume());
        Ok(Attempt::Busy)
    }

    /// On a busy machine with many threads, one longer pause is better than an agent that stays.
    fn settle_limit(&self) -> Duration {
        match self.report.try_count {
            ..=FIRST_TRIES => SETTLE_LIMIT_AT_FIRST,
            more => SETTLE_LIMIT * (1 << (more / FIRST_TRIES).min(3)),
        }
    }

    /// Shuts the gate, and restores the overwritten bytes if no thread is in the agent. `false`:
    /// the agent was taken away meanwhile.
    fn close_agent(
        &mut self,
        stopped: &mut Stopped,
        mappings: &[Mapping],
        settle_limit: Duration,
    ) -> Result<bool> {
        let Self { pid, memory, record, .. } = *self;
        let memory_error = |source| Error::Memory { pid, source };
        let (gate, calls) = (&self.gate, &self.calls);
        gate.shut(memory).map_err(memory_error)?;
        // Threads in the allocator are waited for too, because others may wait for locks
        // that they hold. (If no calls reach the agent any more, such locks do not matter.)
        let settled = stopped.settle(settle_limit, |thread| {
            gate.may_be_inside(thread.registers.pc())
                || thread_place::is_on_way_through(calls.agent, thread)
                || self.is_hooked && thread_place::is_in_allocator(calls.code, gate, memory, mappings, thread)
                || calls.may_return_to_agent(memory, mappings, thread)
                    && !self.chains.lead_around(&self.ours, mappings, thread)
        })?;
        if Remains::of(memory, record) != Remains::All {
            return Ok(false);
        }
        if settled == Settled::Quiet {
            self.report.hooks_removed += restore(pid, memory, record)?;
            self.is_restored = true;
        } else {
            stop_clock(memory, record).map_err(memory_error)?;
        }
        // Threads that wait at the gate continue.
        gate.lead_around(memory).map_err(memory_error)?;
        Ok(true)
    }

    /// Unmaps the agent by a thread that is in none of its code.
    fn take_away(
        &mut self,
        stopped: Stopped,
        thread: &StoppedThread,
        mut parts: PauseParts,
        mut stopwatch: Stopwatch,
    ) -> Result<Attempt> {
        let Self { pid, memory, record, gadgets, .. } = *self;
        let tids = std::iter::once(thread.tid);
        if let Err(Error::SeccompForbids { .. }) = seccomp::check(pid, tids, &[seccomp::OF_DETACH]) {
            self.report.pause = self.report.pause.max(stopped.resume());
            return Ok(Attempt::Forbidden);
        }
        let mut borrowed = Borrowed::new(pid, memory, gadgets, thread)?;
        // The others stay stopped: the borrowed thread would otherwise wait for a processor
        // at each call.
        let outcome = take_away::take_away(pid, memory, &mut borrowed, record, &stopped.threads);
        borrowed.bring_home()?;
        parts.install = stopwatch.lap();
        self.report.pause = self.report.pause.max(stopped.resume());
        parts.resume = stopwatch.lap();
        self.report.parts = parts;
        outcome?;
        Ok(Attempt::Over)
    }

    /// Report of an agent whose memory stays.
    fn left(self) -> DetachReport {
        let bytes_left = take_away::bytes_of(self.memory, self.record);
        DetachReport { bytes_left, ..self.report }
    }

    fn leave_agent(self) -> Result<DetachReport> {
        leave_agent(self.pid, self.memory, self.record, self.report)
    }
}

/// Ends the recording at this moment, because calls around the agent are not seen. Further records
/// of other calls would contradict the heap's known state. A realloc without its end leaves the old
/// block live.
fn stop_clock(memory: &ProcessMemory, record: &Record) -> std::result::Result<(), Unreachable> {
    if record.clock_avma == 0 { Ok(()) } else { memory.write(record.clock_avma, &[CLOCK_STOPPED]) }
}

/// Functions besides the allocator's that the agent calls and in which a thread may wait. They are
/// hooked functions that may run the program's code, functions that take the loader's lock, and
/// functions that allocate and thus reach the gate.
fn functions_besides(pid: u32, memory: &ProcessMemory, record: &Record) -> Result<Vec<(u64, u64)>> {
    /// Longer than the code of dlclose and related functions in the C library, which are wrappers.
    const BYTES: u64 = 512;
    const CALLED: [&str; 2] = ["dl_iterate_phdr", "pthread_setspecific"];
    let modules = Modules::read(pid, memory)?;
    // Another library may define the same name, so that the callee is uncertain: all are included.
    let called = modules
        .list
        .iter()
        .flat_map(|module| CALLED.into_iter().filter_map(|name| module.symbol(memory, name)))
        .map(|symbol| (symbol.address_avma, symbol.address_avma.wrapping_add(symbol.size_bytes.max(BYTES))));
    let entries = record.patches.iter().map(|patch| patch.address_avma);
    let hooked = entries
        .filter(|&entry_avma| !is_in(&record.code.allocator_ranges, entry_avma))
        .map(|entry_avma| (entry_avma, entry_avma.wrapping_add(BYTES)));
    Ok(hooked.chain(called).collect())
}

/// Gives up removing the agent, in which a thread may stay for ever: restores the bytes and leaves
/// the agent mapped.
fn leave_agent(
    pid: u32,
    memory: &ProcessMemory,
    record: &Record,
    mut report: DetachReport,
) -> Result<DetachReport> {
    let stopped = match Stopped::stop(pid, None, DETACH_STOP_LIMIT)? {
        Ok(stopped) => stopped,
        Err(restless) => return Err(restless.no_moment(LIMIT)),
    };
    report.hooks_removed += restore(pid, memory, record)?;
    // The next attach tests once whether the thread has left it.
    take_away::mark_left(memory, record).map_err(|source| Error::Memory { pid, source })?;
    report.pause = report.pause.max(stopped.resume());
    report.bytes_left = take_away::bytes_of(memory, record);
    Ok(report)
}
