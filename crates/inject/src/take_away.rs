//! Removal of the agent's memory and key, after the bytes are restored and all threads have left
//! the agent. A borrowed thread runs one piece of code (see [`stub`]) to its end, even if this
//! process is killed.

use heapr_proc::page_bytes;
use heapr_wire::{CONTROL_BLOCK_OFFSET, INJECTED_KEY_SET_TWICE};

use crate::arch::{BEGUN_OFFSET, JumpBytes, Removal, stub};
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _, Unreachable};
use crate::record::{RECORD_MAGIC, Record, SCRATCH_BYTES};
use crate::remote::Borrowed;
use crate::stop::StoppedThread;

/// Mark: a thread has begun the removal, and has not finished it.
const BEGUN: u32 = 1;
/// Mark: the removal was given up because a thread was in the agent.
const LEFT: u32 = 2;

/// Remains of an agent whose record was read, while all threads are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remains {
    All,
    /// A thread is removing the agent.
    IsTakenAway,
    Nothing,
}

impl Remains {
    pub(crate) fn of(memory: &ProcessMemory, record: &Record) -> Self {
        if memory.read_u64(record.start_avma) != Ok(RECORD_MAGIC) {
            return Self::Nothing;
        }
        if mark(memory, record) == Ok(BEGUN) { Self::IsTakenAway } else { Self::All }
    }
}

fn mark_avma(record: &Record) -> u64 {
    record.scratch_avma.wrapping_add(BEGUN_OFFSET)
}

fn mark(memory: &ProcessMemory, record: &Record) -> std::result::Result<u32, Unreachable> {
    memory.read_u32(mark_avma(record))
}

/// True if the agent was left behind because a thread was in it.
pub(crate) fn was_left(memory: &ProcessMemory, record: &Record) -> bool {
    mark(memory, record) == Ok(LEFT)
}

/// Marks the agent as left behind.
pub(crate) fn mark_left(memory: &ProcessMemory, record: &Record) -> std::result::Result<(), Unreachable> {
    memory.write(mark_avma(record), &LEFT.to_le_bytes())
}

/// Number of mapped bytes of the agent.
pub(crate) fn bytes_of(memory: &ProcessMemory, record: &Record) -> u64 {
    let mapped = own_mappings(memory, record).into_iter().chain(record.islands.iter().copied());
    mapped.fold(record.bytes, |sum: u64, (_, bytes)| sum.saturating_add(bytes))
}

/// Removes the agent's data of each thread, its key, and the attach's memory, while all threads are
/// stopped. The thread's return frame must be on its own stack.
pub(crate) fn take_away(
    pid: u32,
    memory: &ProcessMemory,
    thread: &mut Borrowed<'_>,
    record: &Record,
    threads: &[StoppedThread],
) -> Result<()> {
    let memory_error = |source| Error::Memory { pid, source };
    let own = own_mappings(memory, record);
    if record.tls_offset != 0 {
        for stopped in threads {
            let place = stopped.registers.thread_pointer().wrapping_add(record.tls_offset);
            memory.write(place, &[0; 8]).map_err(memory_error)?;
        }
        for &(start, _) in &own {
            forget_ended_thread(memory, record, start);
        }
    }
    // The pairs go over the former stack of the calls. If they do not fit, the agent's list is used
    // as it is. (The kernel refuses a range of 0 bytes.)
    let table_avma = record.scratch_avma + SCRATCH_BYTES;
    let room = record.stack_top_avma.saturating_sub(table_avma) as usize / 16;
    let all = joined(own.into_iter().chain(record.islands.iter().copied()));
    let (pairs_avma, pair_count) = if all.len() <= room {
        let bytes: Vec<u8> =
            all.iter().flat_map(|&(start, bytes)| [start, bytes]).flat_map(u64::to_le_bytes).collect();
        memory.write(table_avma, &bytes).map_err(memory_error)?;
        (table_avma, all.len() as u64)
    } else {
        (record.list_avma, record.list_count)
    };
    let key = (record.end_key != 0 && record.key_delete_avma != 0)
        .then(|| (record.end_key & !u64::from(INJECTED_KEY_SET_TWICE)) - 1);
    if key.is_none() && all.is_empty() {
        // In this case the code may not be installed yet.
        let _ = thread.system_call(libc::SYS_munmap, [record.start_avma, record.bytes, 0, 0, 0, 0])?;
        return Ok(());
    }
    let removal = Removal {
        record_avma: record.start_avma,
        scratch_avma: record.scratch_avma,
        key_delete_avma: key.map_or(0, |_| record.key_delete_avma),
        key: key.unwrap_or(0),
        pairs_avma,
        pair_count,
    };
    thread
        .run_to_last_call(record.stub_avma + stub::TAKE_AWAY, |registers| registers.set_removal(&removal))?;
    // A seccomp filter of the process may forbid unmapping.
    if Remains::of(memory, record) == Remains::IsTakenAway {
        mark_left(memory, record).map_err(memory_error)?;
    }
    Ok(())
}

/// True if all overwritten bytes are still those of the attach.
pub(crate) fn stands(memory: &ProcessMemory, record: &Record) -> bool {
    record.patches.iter().all(|patch| {
        let mut now = JumpBytes::default();
        memory.read(patch.address_avma, &mut now).is_ok() && now == patch.new
    })
}

/// Restores the overwritten bytes that are still those of the attach; returns the number of
/// restored functions.
pub(crate) fn restore(pid: u32, memory: &ProcessMemory, record: &Record) -> Result<usize> {
    let mut restored_count = 0;
    for patch in &record.patches {
        let mut now = JumpBytes::default();
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

/// Undoes an unfinished attach, while the target is still stopped.
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
    take_away(pid, memory, thread, &record, threads)
}

/// Clears the slot of a thread that has ended and left its state there: the next thread on its
/// stack would adopt it. `state_avma` is a mapping of the agent, which may hold another kind of
/// data.
fn forget_ended_thread(memory: &ProcessMemory, record: &Record, state_avma: u64) {
    let Ok(control_block) = memory.read_u64(state_avma.wrapping_add(CONTROL_BLOCK_OFFSET)) else { return };
    let place = control_block.wrapping_add(record.tls_offset);
    // Only such a thread's slot holds this address.
    if control_block != 0 && memory.read_u64(place) == Ok(state_avma) {
        // The stack may be unmapped already.
        let _ = memory.write(place, &[0; 8]);
    }
}

/// Mappings that the agent has made: start and size in bytes.
fn own_mappings(memory: &ProcessMemory, record: &Record) -> Vec<(u64, u64)> {
    const LIST_MAX: u64 = 1 << 16;
    let list =
        memory.read_vec(record.list_avma, record.list_count.min(LIST_MAX) as usize * 16).unwrap_or_default();
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
    let own = list.chunks_exact(16).map(|pair| (word(&pair[..8]), word(&pair[8..])));
    own.filter(|&(start, bytes)| start != 0 && bytes != 0).collect()
}

/// Sorts ranges (start and size in bytes) of whole pages, and joins adjacent ones. Each call into
/// the target takes time, and the states of successively created threads are adjacent.
fn joined(ranges: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    // The ranges come from the target's memory: impossible ones are dropped.
    let whole = |(start, bytes): (u64, u64)| {
        let bytes = bytes.checked_next_multiple_of(page_bytes())?;
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
