//! Detection of processes that may not make memory executable. The kernel reports it only to the
//! process itself, so that one of its threads is borrowed for a call that changes nothing.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::memory::{ProcessMemory, TargetMemory as _};
use crate::own_thread::in_own_thread;
use crate::remote::Borrowed;
use crate::stop::Stopped;
use crate::{plan, seccomp, target, thread_place};

const STOP_LIMIT: Duration = Duration::from_millis(500);
const PR_GET_MDWE: u64 = 66;
/// Bit `PR_MDWE_REFUSE_EXEC_GAIN`.
const REFUSES: u64 = 1;
const EACCES: i32 = 13;

/// True if a process is kept from making memory executable (`PR_SET_MDWE`, which systemd's
/// `MemoryDenyWriteExecute=` sets), so that it cannot be attached to. The process is stopped for
/// some hundred microseconds.
///
/// # Errors
/// Returns an error if the process cannot be asked; it runs on unchanged.
pub fn denies_write_execute(pid: u32) -> Result<bool> {
    in_own_thread(|| ask(pid))
}

/// Replaces the error of an attach by that protection, if it is the cause.
pub(crate) fn explained(pid: u32, error: Error) -> Error {
    let may_be_reason = match &error {
        Error::Unsupported { .. } => true,
        Error::RemoteCall { errno, .. } => *errno == EACCES,
        _ => false,
    };
    if may_be_reason && ask(pid).unwrap_or(false) { Error::WriteExecuteDenied { pid } } else { error }
}

fn ask(pid: u32) -> Result<bool> {
    target::check(pid, false)?;
    if seccomp::has_any(pid) {
        // A filter may end the process for the call.
        return Err(Error::SeccompUnreadable { pid });
    }
    let memory = ProcessMemory::open(pid).map_err(|_| Error::NoSuchProcess { pid })?;
    let gadgets = plan::gadgets(pid, &memory)?;
    let stopped = match Stopped::stop(pid, None, STOP_LIMIT)? {
        Ok(stopped) => stopped,
        Err(restless) => return Err(restless.no_moment(STOP_LIMIT)),
    };
    let mappings = memory.mappings().map_err(|_| Error::Ended { pid })?;
    let Some(&thread) = thread_place::choose_thread(&memory, &mappings, &stopped.threads) else {
        let reason = "no thread has room on its stack".to_owned();
        return Err(Error::NoQuietMoment { pid, seconds: 0, reason });
    };
    let mut borrowed = Borrowed::new(pid, &memory, gadgets, &thread)?;
    // Older kernels have neither the call nor the protection.
    let answer = borrowed.system_call(libc::SYS_prctl, [PR_GET_MDWE, 0, 0, 0, 0, 0])?;
    borrowed.bring_home()?;
    stopped.resume();
    Ok(answer.is_ok_and(|bits| bits & REFUSES != 0))
}
