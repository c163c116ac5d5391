//! Detach from a process.
//!
//! ```text
//! stop     shut the gate: no more calls reach the agent
//!          threads in the agent or the allocator, or with an address of the agent on their stacks,
//!          run on for a moment
//!          (if they wait for something, the gate leads around the agent until the next try, and
//!          their further calls are not recorded either)
//!          restore the overwritten bytes; threads that wait at the gate continue in the functions
//!          delete the key; unmap the agent's memory, the trampoline areas, the agent
//! ```
//!
//! The gate is shut first, instead of restoring the bytes at once, for threads in the agent that
//! wait for a lock of the allocator. Threads that use the allocator without the agent would take
//! that lock again and again.

use std::time::{Duration, Instant};

use heapr_wire::{CLOCK_STOPPED, INJECTION_SYMBOL};

use crate::allocator_code::is_in;
use crate::change::Change;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::loaded_agent;
use crate::memory::{ProcessMemory, TargetMemory as _, Unreachable};
use crate::modules::Modules;
use crate::own_thread::in_own_thread;
use crate::record::Record;
use crate::remote::Borrowed;
use crate::report::{DetachReport, PauseParts, Stopwatch};
use crate::return_chain::ReturnChains;
use crate::stop::{DETACH_STOP_LIMIT, Settled, Stopped};
use crate::take_away::{Remains, restore};
use crate::x86_64::{OPENING_BYTES, entry_of, island_of, record_of};
use crate::{seccomp, take_away, target, thread_place};

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

/// Finds the record of an attach in the target; `None` if it has no record.
pub(crate) fn find_record(pid: u32, memory: &ProcessMemory) -> Result<Option<Record>> {
    let modules = Modules::read(pid, memory)?;
    let provider = modules.list.iter().filter(|module| module.symbol(memory, INJECTION_SYMBOL).is_none());
    for module in provider {
        let Some(malloc) = module.symbol(memory, "malloc") else { continue };
        let mut code = [0; 16];
        if memory.read(malloc.address_avma, &mut code).is_err() {
            continue;
        }
        let entry_avma = entry_of(malloc.address_avma, &code);
        let behind = &code[(entry_avma - malloc.address_avma) as usize..];
        let Some(island_avma) = island_of(entry_avma, behind) else { return Ok(None) };
        let mut opening = [0; OPENING_BYTES];
        if memory.read(island_avma, &mut opening).is_err() {
            return Ok(None);
        }
        // A trampoline area written for an agent that the loader loaded has no record.
        let record_avma = record_of(&opening).filter(|&record_avma| record_avma != island_avma);
        return record_avma.map(|record_avma| Record::read(pid, memory, record_avma)).transpose();
    }
    Ok(None)
}

/// Detaches. `between_tries` is called while threads that are still in the agent run on: they may
/// wait for a buffer.
///
/// # Errors
/// See [`Error`].
pub fn detach(pid: u32, between_tries: &mut (dyn FnMut() + Send)) -> Result<DetachReport> {
    let _change = Change::begin(pid);
    in_own_thread(|| detach_here(pid, between_tries))
}

fn detach_here(pid: u32, between_tries: &mut dyn FnMut()) -> Result<DetachReport> {
    target::check(pid, false)?;
    let memory = ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })?;
    match find_record(pid, &memory)? {
        Some(record) => remove(pid, &memory, &record, Whose::Own, between_tries),
        None => loaded_agent::let_go(pid, &memory),
    }
}

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
    let mut report = DetachReport {
        process_slot: record.process_slot as u32,
        process_generation: record.process_generation as u32,
        ..DetachReport::default()
    };
    let gadgets = crate::plan::gadgets(pid, memory)?;
    let gate = Gate::of(record);
    let memory_error = |source| Error::Memory { pid, source };
    let agent = (record.start_avma, record.start_avma.wrapping_add(record.bytes));
    let others = functions_besides(pid, memory, record)?;
    let islands = record.islands.iter().map(|&(start, bytes)| (start, start.wrapping_add(bytes)));
    let islands: Vec<(u64, u64)> = islands.collect();
    let ours: Vec<(u64, u64)> = islands.iter().copied().chain([agent]).collect();
    let mut chains = ReturnChains::new(memory);
    let was_left = take_away::was_left(memory, record);
    let (mut has_looked, mut is_restored) = (false, false);
    let mut is_hooked = true;
    let mut pause = PAUSE_BETWEEN.0;
    let begin = Instant::now();
    loop {
        report.try_count += 1;
        // On a busy machine with many threads, one longer pause is better than an agent that stays.
        let settle_limit = match report.try_count {
            ..=FIRST_TRIES => SETTLE_LIMIT_AT_FIRST,
            more => SETTLE_LIMIT * (1 << (more / FIRST_TRIES).min(3)),
        };
        let mut parts = PauseParts::default();
        let mut stopwatch = Stopwatch::start();
        if let Ok(mut stopped) = Stopped::stop(pid, None, DETACH_STOP_LIMIT)? {
            parts.stop = stopwatch.lap();
            match Remains::of(memory, record) {
                Remains::All => {}
                // A thread that a killed process had borrowed has removed the agent.
                Remains::Nothing => return Ok(report),
                Remains::IsTakenAway => {
                    let is_at_it = |thread: &_| thread_place::is_on_way_through(agent, thread);
                    stopped.settle(settle_limit, is_at_it)?;
                    stopped.resume();
                    if begin.elapsed() > LIMIT {
                        report.bytes_left = take_away::bytes_of(memory, record);
                        return Ok(report);
                    }
                    std::thread::sleep(PAUSE_BETWEEN.0);
                    continue;
                }
            }
            has_looked = true;
            report.thread_count = stopped.threads.len();
            let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
            chains.forget();
            // If the gate no longer stops all calls, the allocator of a busy program is never
            // quiet. The remaining jumps are removed too, so that threads leave the agent.
            if whose == Whose::Orphan && is_hooked && !take_away::stands(memory, record) {
                report.hooks_removed += restore(pid, memory, record)?;
                is_hooked = false;
            }
            if !is_restored {
                gate.shut(memory).map_err(memory_error)?;
                // Threads in the allocator are waited for too, because others may wait for locks
                // that they hold. (If no calls reach the agent any more, such locks do not matter.)
                let settled = stopped.settle(settle_limit, |thread| {
                    gate.may_be_inside(thread.registers.rip)
                        || thread_place::is_on_way_through(agent, thread)
                        || is_hooked
                            && thread_place::is_in_allocator(&record.code, &gate, memory, &mappings, thread)
                        || thread_place::may_return_to_agent(
                            agent,
                            &record.code,
                            &others,
                            gadgets.sigreturn_avma,
                            memory,
                            &mappings,
                            thread,
                        ) && !chains.lead_around(&ours, &mappings, thread)
                })?;
                if Remains::of(memory, record) != Remains::All {
                    continue;
                }
                if settled == Settled::Quiet {
                    report.hooks_removed += restore(pid, memory, record)?;
                    is_restored = true;
                } else {
                    stop_clock(memory, record).map_err(memory_error)?;
                }
                // Threads that wait at the gate continue.
                gate.lead_around(memory).map_err(memory_error)?;
            }
            let settled = match is_restored {
                // All threads had left the agent, and no path has led there since; stale addresses
                // on their stacks do not matter.
                true => stopped.settle(settle_limit, |thread| {
                    thread_place::may_return_to(&islands, &gate.waited_avmas(), memory, &mappings, thread)
                        && !chains.lead_around(&ours, &mappings, thread)
                })?,
                false => Settled::Busy,
            };
            parts.settle = stopwatch.lap();
            let thread = thread_place::choose_thread(memory, &mappings, &stopped.threads).copied();
            if settled == Settled::Quiet
                && let Some(thread) = thread
            {
                let tids = std::iter::once(thread.tid);
                if let Err(Error::SeccompForbids { .. }) = seccomp::check(pid, tids, &[seccomp::OF_DETACH]) {
                    report.pause = report.pause.max(stopped.resume());
                    return leave_agent(pid, memory, record, report);
                }
                let mut borrowed = Borrowed::new(pid, memory, gadgets, &thread)?;
                // The others stay stopped: the borrowed thread would otherwise wait for a processor
                // at each call.
                let outcome = take_away::take_away(pid, memory, &mut borrowed, record, &stopped.threads);
                borrowed.bring_home()?;
                parts.install = stopwatch.lap();
                report.pause = report.pause.max(stopped.resume());
                parts.resume = stopwatch.lap();
                report.parts = parts;
                outcome?;
                return Ok(report);
            }
            report.pause = report.pause.max(stopped.resume());
        }
        // An agent that was left behind earlier no longer delays any thread.
        if was_left && has_looked {
            report.bytes_left = take_away::bytes_of(memory, record);
            return Ok(report);
        }
        if begin.elapsed() > LIMIT && report.try_count >= TRIES_MIN {
            return leave_agent(pid, memory, record, report);
        }
        between_tries();
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_BETWEEN.1);
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
