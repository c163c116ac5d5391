//! Writing of planned hooks into a stopped process.

use crate::address_room;
use crate::arch::{Island, JUMP_DISTANCE, JumpBytes, Landing};
use crate::error::{Error, Result};
use crate::mapping_flags::{MAP_FLAGS, PROT_READ_EXECUTE, PROT_READ_WRITE};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::record::{ISLANDS_MAX, PATCHES_MAX, Patch, Record};
use crate::remote::Borrowed;

use super::{InsideReport, Planned};

/// A function, its place in a trampoline area, and the jump that leads there.
type Jump<'p> = (&'p Planned, Landing, JumpBytes);

/// Maps the trampoline areas by a thread of the process, fills the agent's table, writes the jumps.
pub(super) fn write(
    pid: u32,
    memory: &ProcessMemory,
    mut borrowed: Borrowed<'_>,
    planned: &[Planned],
    mut record: Option<&mut Record>,
    report: &mut InsideReport,
) -> Result<()> {
    let memory_error = |source| Error::Memory { pid, source };
    let mut areas = Areas { pid, memory, bytes: Island::bytes_for(planned.len()), islands: Vec::new() };
    let mut jumps = Vec::new();
    for function in planned {
        let near = areas.near(function.prologue.entry_avma, &mut borrowed, record.as_deref_mut())?;
        match near.and_then(|island| land(island, function)) {
            Ok((landing, jump)) => jumps.push((function, landing, jump)),
            Err(reason) => report.not_hooked.push((function.name.clone(), reason.to_owned())),
        }
    }
    for island in &areas.islands {
        memory.write(island.start_avma, &island.bytes).map_err(memory_error)?;
        let arguments = [island.start_avma, areas.bytes, PROT_READ_EXECUTE, 0, 0, 0];
        borrowed.call_system("mprotect", libc::SYS_mprotect, arguments)?;
    }
    borrowed.bring_home()?;
    for (function, landing, _) in &jumps {
        let real = function.real_avma.map(|avma| (avma, landing.moved_avma));
        for (avma, word) in function.words.iter().copied().chain(real) {
            memory.write(avma, &word.to_le_bytes()).map_err(memory_error)?;
        }
    }
    if let Some(record) = record {
        record.code.has_other = true;
        let room = PATCHES_MAX.saturating_sub(record.patches.len());
        for (function, ..) in jumps.drain(room.min(jumps.len())..) {
            report.not_hooked.push((function.name.clone(), TOO_MANY.to_owned()));
        }
        note_patches(pid, memory, record, &jumps)?;
    }
    for (function, _, jump) in &jumps {
        memory.write(function.prologue.entry_avma, jump).map_err(memory_error)?;
        if function.real_avma.is_some() {
            report.hooked.push(function.name.clone());
        }
    }
    Ok(())
}

const TOO_MANY: &str = "there are too many";

/// Trampoline areas of a process.
struct Areas<'a> {
    pid: u32,
    memory: &'a ProcessMemory,
    /// Size of each in bytes.
    bytes: u64,
    islands: Vec<Island>,
}

impl Areas<'_> {
    /// Returns the area near a function, which is mapped if necessary, or the reason why it cannot
    /// be mapped.
    fn near(
        &mut self,
        entry_avma: u64,
        borrowed: &mut Borrowed<'_>,
        record: Option<&mut Record>,
    ) -> Result<std::result::Result<&mut Island, &'static str>> {
        let (pid, memory, bytes) = (self.pid, self.memory, self.bytes);
        let is_near = |island: &Island| island.start_avma.abs_diff(entry_avma) < JUMP_DISTANCE;
        if let Some(near) = self.islands.iter().position(is_near) {
            return Ok(Ok(&mut self.islands[near]));
        }
        if record.as_ref().is_some_and(|record| record.islands.len() >= ISLANDS_MAX) {
            return Ok(Err(TOO_MANY));
        }
        let start = map_near(pid, memory, borrowed, entry_avma, bytes)?;
        let island = match record {
            Some(record) => {
                record.islands.push((start, bytes));
                let written = memory.write(record.start_avma, &record.to_bytes());
                written.map_err(|source| Error::Memory { pid, source })?;
                Island::new(start, record.start_avma, record.gate_avma())
            }
            None => Island::new(start, start, start),
        };
        self.islands.push(island.map_err(|reason| Error::Unsupported { pid, reason })?);
        let last = self.islands.len() - 1;
        Ok(Ok(&mut self.islands[last]))
    }
}

/// Adds a function to an area.
fn land(island: &mut Island, function: &Planned) -> std::result::Result<(Landing, JumpBytes), &'static str> {
    let landing = island.add(&function.prologue, &function.way)?;
    let jump = Island::jump_from(&function.prologue, landing)?;
    // No gate is needed, because the agent is active.
    let at = (landing.target_avma - island.start_avma) as usize;
    island.bytes[at..at + 8].copy_from_slice(&landing.trampoline_avma.to_le_bytes());
    island.count(landing);
    Ok((landing, jump))
}

/// Lists the changes in the record before they are made.
fn note_patches(pid: u32, memory: &ProcessMemory, record: &mut Record, jumps: &[Jump<'_>]) -> Result<()> {
    let memory_error = |source| Error::Memory { pid, source };
    for (function, landing, new) in jumps {
        let counts = landing.counts;
        let (address_avma, target_avma) = (function.prologue.entry_avma, landing.target_avma);
        let mut original = JumpBytes::default();
        memory.read(address_avma, &mut original).map_err(memory_error)?;
        record.patches.push(Patch { address_avma, original, new: *new, target_avma, counts });
    }
    memory.write(record.start_avma, &record.to_bytes()).map_err(memory_error)
}

/// Maps memory near a function.
fn map_near(
    pid: u32,
    memory: &ProcessMemory,
    thread: &mut Borrowed<'_>,
    near_avma: u64,
    bytes: u64,
) -> Result<u64> {
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    let hint = address_room::room_near(&mappings, near_avma, bytes, JUMP_DISTANCE)
        .ok_or(Error::Unsupported { pid, reason: "there is no free address range near its allocator" })?;
    let arguments = [hint, bytes, PROT_READ_WRITE, MAP_FLAGS, u64::MAX, 0];
    thread.call_system("mmap", libc::SYS_mmap, arguments)
}
