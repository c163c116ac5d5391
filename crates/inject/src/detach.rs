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

use heapr_wire::INJECTION_SYMBOL;

use crate::arch::{OPENING_BYTES, entry_of, island_of, record_of};
use crate::change::Change;
use crate::error::{Error, Result};
use crate::loaded_agent;
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;
use crate::own_thread::in_own_thread;
use crate::record::Record;
use crate::removal::{Whose, remove};
use crate::report::DetachReport;
use crate::target;

/// Finds the record of an attach in the target; `None` if it has no record.
pub(crate) fn find_record(pid: u32, memory: &ProcessMemory) -> Result<Option<Record>> {
    find_record_among(pid, memory, &Modules::read(pid, memory)?)
}

/// Variant of [`find_record`] for a target whose modules are known.
pub(crate) fn find_record_among(
    pid: u32,
    memory: &ProcessMemory,
    modules: &Modules,
) -> Result<Option<Record>> {
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
