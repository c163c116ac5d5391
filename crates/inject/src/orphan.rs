//! An agent that was left behind: whoever attached it was killed. The next attach removes it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;

use heapr_proc::{Mapping, telling_thread};
use heapr_wire::{SESSION_CLOSED, SESSION_RECORDING};

use crate::detach::{Whose, find_record, remove};
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::record::{RECORD_MAGIC, Record};
use crate::recorder_life::is_recorder_alive;
use crate::{loaded_agent, target};

/// Removes an agent whose recorder is gone. Bytes of it that stay mapped, because a thread may
/// return into them.
///
/// # Errors
/// [`Error::AlreadyAttached`] or [`Error::LetGo`] if the recorder lives.
pub(crate) fn clear(pid: u32, memory: &ProcessMemory) -> Result<u64> {
    let mut bytes_left = 0;
    let mappings = memory.mappings().map_err(|_| target::not_permitted(pid))?;
    check_orphan(pid, memory, &mappings)?;
    let pools = dead_pools(pid, memory, &mappings);
    // Threads that wait for a buffer find out by themselves that nobody will free one: after a
    // second, where they cannot see who is gone after half a minute.
    for pool in self::pools(&mappings) {
        let state_avma = pool.start_avma + std::mem::offset_of!(heapr_wire::Control, state) as u64;
        let _ = memory.write(state_avma, &SESSION_CLOSED.to_le_bytes());
    }
    if let Some(record) = find_record(pid, memory)? {
        bytes_left += remove(pid, memory, &record, Whose::Orphan, &mut || ())?.bytes_left;
    }
    for record in cut_short(pid, memory, &mappings) {
        // Another one may just be attaching.
        target::check(pid, false)?;
        check_orphan(pid, memory, &memory.mappings().map_err(|_| Error::Ended { pid })?)?;
        bytes_left += remove(pid, memory, &record, Whose::Orphan, &mut || ())?.bytes_left;
    }
    // What stays shall at least take no memory: nobody reads it.
    for pool in pools.iter().filter(|_| bytes_left > 0) {
        let _ = punch(pool);
    }
    Ok(bytes_left)
}

/// The buffers that it has mapped of recorders that are gone, as far as we may open them.
fn dead_pools(pid: u32, memory: &ProcessMemory, mappings: &[Mapping]) -> Vec<File> {
    let telling = telling_thread(pid);
    let dead = pools(mappings).filter(|pool| !is_recorder_alive(memory, pool.start_avma));
    let open = |pool: &Mapping| {
        let place = format!("/proc/{telling}/map_files/{:x}-{:x}", pool.start_avma, pool.end_avma);
        OpenOptions::new().write(true).open(place).ok()
    };
    dead.filter_map(open).collect()
}

/// Gives back the pages of buffers: who writes there gets new ones.
fn punch(pool: &File) -> std::io::Result<()> {
    let bytes = pool.metadata()?.len().cast_signed();
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open for the call; no memory of ours is involved.
    match unsafe { libc::fallocate(pool.as_raw_fd(), mode, 0, bytes) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Where a process has shared buffers of ours.
fn pools(mappings: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    mappings.iter().filter(|mapping| mapping.name.contains("memfd:heapr-pool") && mapping.file_off == 0)
}

/// Whether no recorder lives whose buffers it has mapped.
fn check_orphan(pid: u32, memory: &ProcessMemory, mappings: &[Mapping]) -> Result<()> {
    for pool in pools(mappings) {
        let state_avma = pool.start_avma + std::mem::offset_of!(heapr_wire::Control, state) as u64;
        if memory.read_u32(state_avma) == Ok(SESSION_RECORDING) && is_recorder_alive(memory, pool.start_avma)
        {
            return Err(match loaded_agent::was_let_go(pid, memory)? {
                true => Error::LetGo { pid },
                false => Error::AlreadyAttached { pid },
            });
        }
    }
    Ok(())
}

/// The records of attaches that were killed before their first jump, which no jump leads to.
fn cut_short(pid: u32, memory: &ProcessMemory, mappings: &[Mapping]) -> Vec<Record> {
    /// The kernel makes one of neighbours; islands are small, and made by us.
    const JOINED_BYTES_MAX: u64 = 1 << 20;
    let anonymous = mappings.iter().filter(|mapping| mapping.inode == 0 && mapping.name.is_empty());
    let places = anonymous.flat_map(|mapping| {
        let bytes = mapping.end_avma - mapping.start_avma;
        let is_searched = mapping.is_executable && bytes <= JOINED_BYTES_MAX;
        let end_avma = if is_searched { mapping.end_avma } else { mapping.start_avma + 1 };
        (mapping.start_avma..end_avma).step_by(4096)
    });
    let marked = places.filter(|&place_avma| memory.read_u64(place_avma) == Ok(RECORD_MAGIC));
    marked.filter_map(|place_avma| Record::read(pid, memory, place_avma).ok()).collect()
}
