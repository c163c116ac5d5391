//! Start of tracing a thread, and handling of another tracer.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::{ptrace, target};

/// Result of an attempt to seize a thread.
pub(crate) enum Seizing {
    Done,
    Ended,
    /// Another thread of this process still traces it, and is about to end.
    Later,
}

/// Seizes a thread of a process, without stopping it.
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
            // The thread did not stop at the last try, so that it could not be released.
            Some(tracer) if tracer == ptrace::own_tid() => return Ok(Seizing::Done),
            Some(tracer) if target::is_own_thread(tracer) && Instant::now() < deadline => {
                return Ok(Seizing::Later);
            }
            // The other tracer may have released the thread meanwhile.
            Some(0) if !is_second => is_second = true,
            _ => return Err(target::not_permitted(pid)),
        }
    }
}
