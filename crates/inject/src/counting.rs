//! Switch between two modes of an attached process while the session runs: calls are counted before
//! they reach the agent, or each call reaches it.

use std::time::Duration;

use crate::change::Change;
use crate::detach::find_record;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::memory::ProcessMemory;
use crate::own_thread::in_own_thread;
use crate::stop::Stopped;
use crate::target;

/// Longest time for the threads to stop.
const STOP_LIMIT: Duration = Duration::from_millis(50);

/// Turns counting of calls in `pid` on or off. Does nothing if the loader has loaded the agent,
/// which chooses by itself. `false`: another change of the process is in progress, and nothing was
/// done.
///
/// # Errors
/// See [`Error`]: the process is then unchanged.
pub fn count_down(pid: u32, is_on: bool) -> Result<bool> {
    let Some(_change) = Change::try_begin(pid) else { return Ok(false) };
    in_own_thread(|| count_down_here(pid, is_on)).map(|()| true)
}

fn count_down_here(pid: u32, is_on: bool) -> Result<()> {
    target::check(pid, false)?;
    let memory = ProcessMemory::open(pid).map_err(|error| match error.kind() {
        std::io::ErrorKind::PermissionDenied => target::not_permitted(pid),
        _ => Error::NoSuchProcess { pid },
    })?;
    let Some(gate) = find_record(pid, &memory)?.map(|record| Gate::of(&record)).filter(Gate::counts) else {
        return Ok(());
    };
    let stopped = match Stopped::stop(pid, None, STOP_LIMIT)? {
        Ok(stopped) => stopped,
        Err(restless) => return Err(restless.no_moment(STOP_LIMIT)),
    };
    let outcome = gate.count_down(&memory, is_on).map_err(|source| Error::Memory { pid, source });
    stopped.resume();
    outcome
}
