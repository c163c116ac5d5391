//! Beginning to trace a thread: who may be in the way, and what to do then.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::{ptrace, target};

/// What came of an attempt to seize a thread.
pub(crate) enum Seizing {
    Done,
    Ended,
    /// A thread of ours that is about to end holds it still.
    Later,
}

/// Seizes a thread of a process, which does not stop for that.
pub(crate) fn seize(pid: u32, tid: u32, deadline: Instant) -> Result<Seizing> {
    let mut is_second = false;
    loop {
        let Err(source) = ptrace::seize(tid) else { return Ok(Seizing::Done) };
        let has_ended = target::has_ended(pid, tid);
        match source.raw_os_error() {
            _ if has_ended => return Ok(Seizing::Ended),
            Some(libc::ESRCH) => return Ok(Seizing::Ended),
            Some(libc::EPERM) => {}
            _ => return Err(Error::Trace { pid, call: "PTRACE_SEIZE", source }),
        }
        match target::tracer(pid, tid) {
            // It did not stop at the last try, so that it could not be let go.
            Some(tracer) if tracer == ptrace::own_tid() => return Ok(Seizing::Done),
            Some(tracer) if target::is_own_thread(tracer) && Instant::now() < deadline => {
                return Ok(Seizing::Later);
            }
            // It may have been let go since.
            Some(0) if !is_second => is_second = true,
            _ => return Err(target::not_permitted(pid)),
        }
    }
}
