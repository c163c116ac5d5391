//! Removal of an orphaned agent, whose attaching process was killed. The next attach does it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd as _;

use heapr_proc::page_bytes;
use heapr_proc::{Mapping, telling_thread};
use heapr_wire::{SESSION_CLOSED, SESSION_RECORDING};

use crate::detach::find_record;
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::record::{RECORD_MAGIC, Record};
use crate::recorder_life::is_recorder_alive;
use crate::removal::{Whose, remove};
use crate::{loaded_agent, target};

/// Removes an agent whose recorder is gone. Returns the number of its bytes that stay mapped,
/// because a thread may return into them.
///
/// # Errors
/// [`Error::AlreadyAttached`] or [`Error::LetGo`] if the recorder lives.
pub(crate) fn clear(pid: u32, memory: &ProcessMemory) -> Result<u64> {
    let mut bytes_left = 0;
    let mappings = memory.mappings().map_err(|_| target::not_permitted(pid))?;
    check_orphan(pid, memory, &mappings)?;
    let pools = dead_pools(pid, memory, &mappings);
    // Waiting threads find out by themselves that the recorder is gone: after a second, or after
    // half a minute if they cannot see its process.
    for pool in self::pools(&mappings) {
        let state_avma = pool.start_avma + std::mem::offset_of!(heapr_wire::Control, state) as u64;
        let _ = memory.write(state_avma, &SESSION_CLOSED.to_le_bytes());
    }
    if let Some(record) = find_record(pid, memory)? {
        bytes_left += remove(pid, memory, &record, Whose::Orphan, &mut || ())?.bytes_left;
    }
    for record in cut_short(pid, memory, &mappings) {
        // Another process may be attaching at this moment.
        target::check(pid, false)?;
        check_orphan(pid, memory, &memory.mappings().map_err(|_| Error::Ended { pid })?)?;
        bytes_left += remove(pid, memory, &record, Whose::Orphan, &mut || ())?.bytes_left;
    }
    // Memory that stays mapped should not stay resident, because it has no reader.
    for pool in pools.iter().filter(|_| bytes_left > 0) {
        let _ = punch(pool);
    }
    Ok(bytes_left)
}

/// Opens the shared buffers of dead recorders that the process has mapped, as far as permitted.
fn dead_pools(pid: u32, memory: &ProcessMemory, mappings: &[Mapping]) -> Vec<File> {
    let telling = telling_thread(pid);
    let dead = pools(mappings).filter(|pool| !is_recorder_alive(memory, pool.start_avma));
    let open = |pool: &Mapping| {
        let place = format!("/proc/{telling}/map_files/{:x}-{:x}", pool.start_avma, pool.end_avma);
        OpenOptions::new().write(true).open(place).ok()
    };
    dead.filter_map(open).collect()
}

/// Frees the pages of buffers; later writes allocate new ones.
fn punch(pool: &File) -> std::io::Result<()> {
    let bytes = pool.metadata()?.len().cast_signed();
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open for the call; no memory of ours is involved.
    match unsafe { libc::fallocate(pool.as_raw_fd(), mode, 0, bytes) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Mappings of heapr's shared buffers in a process.
fn pools(mappings: &[Mapping]) -> impl Iterator<Item = &Mapping> {
    mappings.iter().filter(|mapping| mapping.name.contains("memfd:heapr-pool") && mapping.file_off == 0)
}

/// Checks that all recorders whose buffers the process has mapped are dead.
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

/// Finds the records of attaches that were killed before their first jump, so that no jump leads to
/// them.
fn cut_short(pid: u32, memory: &ProcessMemory, mappings: &[Mapping]) -> Vec<Record> {
    /// Largest mapping, in bytes, that is searched page by page. The kernel joins adjacent
    /// mappings; those of heapr's trampoline areas are small.
    const JOINED_BYTES_MAX: u64 = 1 << 20;
    let anonymous = mappings.iter().filter(|mapping| mapping.inode == 0 && mapping.name.is_empty());
    let places = anonymous.flat_map(|mapping| {
        let bytes = mapping.end_avma - mapping.start_avma;
        let is_searched = mapping.is_executable && bytes <= JOINED_BYTES_MAX;
        let end_avma = if is_searched { mapping.end_avma } else { mapping.start_avma + 1 };
        (mapping.start_avma..end_avma).step_by(page_bytes() as usize)
    });
    let marked = places.filter(|&place_avma| memory.read_u64(place_avma) == Ok(RECORD_MAGIC));
    marked.filter_map(|place_avma| Record::read(pid, memory, place_avma).ok()).collect()
}
