//! Writing of planned hooks into a stopped process.

use crate::arch::{Island, JumpBytes, Landing};
use crate::areas::{Areas, Ground, TOO_MANY};
use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::record::{PATCHES_MAX, Patch, Record};
use crate::remote::Borrowed;

use super::{InsideReport, Planned};

/// A function, its place in a trampoline area, and the jump that leads there.
type Jump<'p> = (&'p Planned, Landing, JumpBytes);

/// Maps the trampoline areas by a thread of the process, fills the agent's table, writes the jumps.
pub(super) fn write(
    ground: Ground<'_>,
    mut borrowed: Borrowed<'_>,
    planned: &[Planned],
    mut record: Option<&mut Record>,
    report: &mut InsideReport,
) -> Result<()> {
    let Ground { pid, memory, .. } = ground;
    let memory_error = |source| Error::Memory { pid, source };
    let mut areas = Areas::new(ground, planned.len());
    let mut jumps = Vec::new();
    for function in planned {
        let near = areas.near(&mut borrowed, function.prologue.entry_avma, record.as_deref_mut())?;
        match near.and_then(|island| land(island, function)) {
            Ok((landing, jump)) => jumps.push((function, landing, jump)),
            Err(reason) => report.not_hooked.push((function.name.clone(), reason.to_owned())),
        }
    }
    areas.write(&mut borrowed)?;
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
