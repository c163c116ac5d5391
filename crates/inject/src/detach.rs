//! Detaching, and undoing an attach that failed.
//!
//! ```text
//! stop     shut the gate: from now on no call comes into the agent
//!          threads in the agent or the allocator, or with an address of the agent on their stacks, run on for a moment; if they wait
//!          for something, the gate leads around the agent until the next try, and what they still do is not recorded either
//!          put back the overwritten bytes; those who wait at the gate go on to the functions themselves
//!          delete the key, unmap the agent's memory, the islands, the agent
//! ```
//!
//! Shutting the gate first, instead of putting the bytes back at once, lets threads out of the
//! agent that wait for a lock of the allocator's: those that use it without the agent would take it
//! again and again.

use std::time::{Duration, Instant};

use heapr_wire::{CLOCK_STOPPED, CONTROL_BLOCK_OFFSET, INJECTED_KEY_SET_TWICE, INJECTION_SYMBOL};

use crate::allocator_code::is_in;
use crate::change::Change;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::loaded_agent;
use crate::memory::{ProcessMemory, TargetMemory as _, Unreachable};
use crate::modules::Modules;
use crate::own_thread::in_own_thread;
use crate::record::Record;
use crate::remote::{Borrowed, SYS_MUNMAP};
use crate::report::{DetachReport, PauseParts, Stopwatch};
use crate::return_chain::ReturnChains;
use crate::stop::{DETACH_STOP_LIMIT, Settled, Stopped, StoppedThread};
use crate::x86_64::{OPENING_BYTES, entry_of, island_of, record_of};
use crate::{seccomp, target, thread_place};

/// How long threads may take to leave the agent.
const LIMIT: Duration = Duration::from_secs(5);
const SETTLE_LIMIT: Duration = Duration::from_millis(30);
/// At the first tries: enough for 64 threads on two processors, each of which leaves an allocator
/// (3 ms). Those that wait for a buffer get it only when the target runs again, and nobody else
/// comes into the agent then.
const SETTLE_LIMIT_AT_FIRST: Duration = Duration::from_millis(8);
const FIRST_TRIES: u32 = 4;
/// Tries that are made however long each takes: on a busy machine threads come out of the agent
/// slowly.
const TRIES_MIN: u32 = 40;
/// Between two tries; twice as long each time, up to the second.
const PAUSE_BETWEEN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(80));

/// The record of an attach in the target; `None` if there is none.
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
        // (Where the program has brought the agent itself an island has no record.)
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
        Some(record) => remove(pid, &memory, &record, between_tries),
        None => loaded_agent::let_go(pid, &memory),
    }
}

pub(crate) fn remove(
    pid: u32,
    memory: &ProcessMemory,
    record: &Record,
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
    let mut is_restored = false;
    let mut pause = PAUSE_BETWEEN.0;
    let begin = Instant::now();
    loop {
        report.try_count += 1;
        // On a busy machine many threads take their time: rather one longer pause than an agent
        // that stays.
        let settle_limit = match report.try_count {
            ..=FIRST_TRIES => SETTLE_LIMIT_AT_FIRST,
            more => SETTLE_LIMIT * (1 << (more / FIRST_TRIES).min(3)),
        };
        let mut parts = PauseParts::default();
        let mut stopwatch = Stopwatch::start();
        if let Ok(mut stopped) = Stopped::stop(pid, None, DETACH_STOP_LIMIT)? {
            parts.stop = stopwatch.lap();
            report.thread_count = stopped.threads.len();
            let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
            chains.forget();
            if !is_restored {
                gate.shut(memory).map_err(memory_error)?;
                // Those in the allocator too: others may wait for a lock that they hold.
                let settled = stopped.settle(settle_limit, |thread| {
                    gate.may_be_inside(thread.registers.rip)
                        || thread_place::is_in_allocator(&record.code, &gate, memory, &mappings, thread)
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
                if settled == Settled::Quiet {
                    report.hooks_removed = restore(pid, memory, record)?;
                    is_restored = true;
                } else {
                    stop_clock(memory, record).map_err(memory_error)?;
                }
                // Who waits goes on.
                gate.lead_around(memory).map_err(memory_error)?;
            }
            let settled = match is_restored {
                // None was in the agent, and no way has led there since; what its frames have left
                // on stacks is no matter.
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
                // With the others still: if they went on the borrowed thread would wait for a
                // processor at each call.
                let outcome = forget_threads(pid, memory, &mut borrowed, record, &stopped.threads)
                    .and_then(|()| unmap(memory, &mut borrowed, record));
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
        if begin.elapsed() > LIMIT && report.try_count >= TRIES_MIN {
            return leave_agent(pid, memory, record, report);
        }
        between_tries();
        std::thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_BETWEEN.1);
    }
}

/// Ends the recording at this moment: calls that go around the agent are not seen from now on, and
/// what was recorded of the others would contradict what is known of the heap. A realloc whose end
/// is not recorded leaves the old block live.
fn stop_clock(memory: &ProcessMemory, record: &Record) -> std::result::Result<(), Unreachable> {
    if record.clock_avma == 0 { Ok(()) } else { memory.write(record.clock_avma, &[CLOCK_STOPPED]) }
}

/// Functions besides the allocator's that the agent calls and in which a thread may wait: hooked
/// ones, which may run code of the program's; those that take a lock of the loader's; those that
/// allocate by themselves, so that they come to the gate.
fn functions_besides(pid: u32, memory: &ProcessMemory, record: &Record) -> Result<Vec<(u64, u64)>> {
    /// Longer than dlclose and its kin are in the C library, which are wrappers.
    const BYTES: u64 = 512;
    const CALLED: [&str; 2] = ["dl_iterate_phdr", "pthread_setspecific"];
    let modules = Modules::read(pid, memory)?;
    // Another library may define the name, too: which one the agent calls is not known any more.
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

/// A thread may be in the agent for as long as it likes: the bytes are put back, the agent stays.
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
    // Nobody tries again.
    memory.write(record.start_avma, &[0; 8]).map_err(|source| Error::Memory { pid, source })?;
    report.pause = report.pause.max(stopped.resume());
    let mapped = own_mappings(memory, record).into_iter().chain(record.islands.iter().copied());
    let mapped_bytes = mapped.fold(0, |sum: u64, (_, bytes)| sum.saturating_add(bytes));
    report.bytes_left = record.bytes.saturating_add(mapped_bytes);
    Ok(report)
}

/// Puts the overwritten bytes back, where ours still stand.
fn restore(pid: u32, memory: &ProcessMemory, record: &Record) -> Result<usize> {
    let mut restored_count = 0;
    for patch in &record.patches {
        let mut now = [0; 5];
        // The library may have been unloaded.
        if memory.read(patch.address_avma, &mut now).is_ok() && now == patch.new {
            memory
                .write(patch.address_avma, &patch.original)
                .map_err(|source| Error::Memory { pid, source })?;
            restored_count += 1;
        }
    }
    Ok(restored_count)
}

/// Takes away what the agent keeps for each thread, while all stand still.
fn forget_threads(
    pid: u32,
    memory: &ProcessMemory,
    thread: &mut Borrowed<'_>,
    record: &Record,
    threads: &[StoppedThread],
) -> Result<()> {
    if record.end_key != 0 && record.key_delete_avma != 0 {
        let own_frame_avma = thread.frame_avma();
        thread.place_frame(record.stack_top_avma)?;
        let key = (record.end_key & !u64::from(INJECTED_KEY_SET_TWICE)) - 1;
        thread.call_function(record.stub_avma, record.scratch_avma, record.key_delete_avma, [key, 0, 0])?;
        thread.place_frame(own_frame_avma)?;
    }
    if record.tls_offset != 0 {
        for stopped in threads {
            let place = stopped.registers.fs_base.wrapping_add(record.tls_offset);
            memory.write(place, &[0; 8]).map_err(|source| Error::Memory { pid, source })?;
        }
        for (start, _) in own_mappings(memory, record) {
            forget_ended_thread(memory, record, start);
        }
    }
    Ok(())
}

/// Clears the slot of a thread that has ended and left its state there: the next thread on its
/// stack would take it for its own. `state_avma`: a mapping of the agent's, which may be no state.
fn forget_ended_thread(memory: &ProcessMemory, record: &Record, state_avma: u64) {
    let Ok(control_block) = memory.read_u64(state_avma.wrapping_add(CONTROL_BLOCK_OFFSET)) else { return };
    let place = control_block.wrapping_add(record.tls_offset);
    // Nothing else holds this address there.
    if control_block != 0 && memory.read_u64(place) == Ok(state_avma) {
        // The stack may be gone by now.
        let _ = memory.write(place, &[0; 8]);
    }
}

/// The mappings that the agent has made: start and bytes.
fn own_mappings(memory: &ProcessMemory, record: &Record) -> Vec<(u64, u64)> {
    const LIST_MAX: u64 = 1 << 16;
    let list =
        memory.read_vec(record.list_avma, record.list_count.min(LIST_MAX) as usize * 16).unwrap_or_default();
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let own = list.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..])));
    own.filter(|&(start, bytes)| start != 0 && bytes != 0).collect()
}

/// Frees the memory that the attach has made in the target.
fn unmap(memory: &ProcessMemory, thread: &mut Borrowed<'_>, record: &Record) -> Result<()> {
    let own = own_mappings(memory, record);
    let whole = std::iter::once((record.start_avma, record.bytes)).filter(|&(start, _)| start != 0);
    // What the calls run through goes last, and its own.
    let own = joined(own.into_iter().chain(record.islands.iter().copied()));
    for (start, bytes) in own.into_iter().chain(joined(whole)) {
        let _ = thread.system_call(SYS_MUNMAP, [start, bytes, 0, 0, 0, 0])?;
    }
    Ok(())
}

/// Ranges (start and bytes, of whole pages) by address, neighbours made one: each call into the
/// target takes its time, and the states of threads that were made after each other lie side by
/// side.
fn joined(ranges: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    // They stood in the target's memory: what can be no range is none.
    let whole = |(start, bytes): (u64, u64)| {
        let bytes = bytes.checked_next_multiple_of(4096)?;
        start.checked_add(bytes).map(|_| (start, bytes))
    };
    let mut ranges: Vec<(u64, u64)> = ranges.filter_map(whole).collect();
    ranges.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, bytes) in ranges {
        match joined.last_mut() {
            Some((first, length)) if *first + *length == start => *length += bytes,
            _ => joined.push((start, bytes)),
        }
    }
    joined
}

/// Undoes what an attach has done so far, while the target still stands still.
pub(crate) fn undo(
    pid: u32,
    memory: &ProcessMemory,
    thread: &mut Borrowed<'_>,
    record: &Record,
    patches_written: usize,
    threads: &[StoppedThread],
) -> Result<()> {
    let mut record = record.clone();
    record.patches.truncate(patches_written);
    restore(pid, memory, &record)?;
    if record.start_avma == 0 {
        return Ok(());
    }
    forget_threads(pid, memory, thread, &record, threads)?;
    unmap(memory, thread, &record)
}
