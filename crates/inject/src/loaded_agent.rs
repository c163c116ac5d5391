//! Detach from an agent that the loader loaded when the program started, by heapr or by a traced
//! process.
//!
//! No code was overwritten, so that nothing can be restored, and a library that defines malloc
//! cannot be unloaded. But the agent can be ended with one byte while all threads are stopped. No
//! event has a time afterwards, so that no later event is recorded without the earlier ones. The
//! next call leads all further calls around the agent.

use std::mem::offset_of;

use heapr_wire::{BUILD_ID, CLOCK_ENDED, INJECTION_MAGIC, INJECTION_SYMBOL, Injection};

use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::modules::Modules;
use crate::report::{DetachReport, PauseParts, Stopwatch};
use crate::stop::{DETACH_STOP_LIMIT, Stopped};

/// Address of the agent's choice of a clock; `None` if the loader has loaded no agent of this
/// build.
fn find_clock(pid: u32, memory: &ProcessMemory) -> Result<Option<u64>> {
    let modules = Modules::read(pid, memory)?;
    let agents = modules.list.iter().filter_map(|module| module.symbol(memory, INJECTION_SYMBOL));
    let clocks = agents.map(|agent| {
        let word = |offset: usize| memory.read_u64(agent.address_avma.wrapping_add(offset as u64));
        let is_ours = word(offset_of!(Injection, magic)) == Ok(INJECTION_MAGIC)
            && word(offset_of!(Injection, build_id)) == Ok(BUILD_ID);
        word(offset_of!(Injection, clock)).ok().filter(|_| is_ours)
    });
    Ok(clocks.flatten().next())
}

/// True if the process has such an agent, and was detached from it.
pub(crate) fn was_let_go(pid: u32, memory: &ProcessMemory) -> Result<bool> {
    let mut clock = [0];
    let Some(clock_avma) = find_clock(pid, memory)? else { return Ok(false) };
    Ok(memory.read(clock_avma, &mut clock).is_ok() && clock == [CLOCK_ENDED])
}

/// Ends the recording of a process whose agent the loader has loaded.
///
/// # Errors
/// [`Error::NotAttached`] if there is no such agent, or its recording has ended already. Other
/// errors if a thread did not stop.
pub(crate) fn let_go(pid: u32, memory: &ProcessMemory) -> Result<DetachReport> {
    let memory_error = |source| Error::Memory { pid, source };
    let clock_avma = find_clock(pid, memory)?.ok_or(Error::NotAttached { pid })?;
    let mut stopwatch = Stopwatch::start();
    let stopped = match Stopped::stop(pid, None, DETACH_STOP_LIMIT)? {
        Ok(stopped) => stopped,
        Err(restless) => return Err(restless.no_moment(stopwatch.lap())),
    };
    let mut parts = PauseParts { stop: stopwatch.lap(), ..PauseParts::default() };
    let thread_count = stopped.threads.len();
    let mut clock = [0];
    let written = memory.read(clock_avma, &mut clock).and_then(|()| memory.write(clock_avma, &[CLOCK_ENDED]));
    parts.install = stopwatch.lap();
    let pause = stopped.resume();
    parts.resume = stopwatch.lap();
    written.map_err(memory_error)?;
    if clock == [CLOCK_ENDED] {
        return Err(Error::NotAttached { pid });
    }
    Ok(DetachReport {
        pause,
        parts,
        thread_count,
        try_count: 1,
        stays_loaded: true,
        ..DetachReport::default()
    })
}
