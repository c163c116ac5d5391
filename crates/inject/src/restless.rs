//! A thread that did not stop on request: the cause, and how long waiting is worthwhile.

use std::fmt;
use std::time::Duration;

use heapr_proc::Stat;

use crate::error::Error;

/// Factor of the time limit for a stop if only processor time is missing. On a machine with ten
/// programs per processor, a thread runs after 50 ms or more, at the next try too.
pub(crate) const LONGER_FOR_PROCESSOR: u32 = 8;

/// State of a thread that did not stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Restless {
    pid: u32,
    tid: u32,
    /// State letter in `/proc/PID/task/TID/stat`.
    state: char,
}

impl Restless {
    /// Reads the state; `None` if the thread is gone.
    pub(crate) fn of(pid: u32, tid: u32) -> Option<Self> {
        Stat::of_thread(pid, tid).map(|stat| Self { pid, tid, state: stat.state() })
    }

    /// True if the thread is ready to run, and stops as soon as it does.
    pub(crate) fn waits_for_processor(self) -> bool {
        // The thread may have stopped or ended meanwhile.
        !matches!(self.state, 'D' | 'S' | 'T' | 'I')
    }

    /// Error for a caller that does not try again.
    pub(crate) fn no_moment(self, tried_for: Duration) -> Error {
        Error::NoQuietMoment { pid: self.pid, seconds: tried_for.as_secs(), reason: self.to_string() }
    }
}

impl fmt::Display for Restless {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, tid, state } = *self;
        let name = heapr_proc::thread_name(pid, tid).unwrap_or_default();
        write!(out, "thread {tid} ({name}) did not stop: ")?;
        if self.waits_for_processor() {
            return out.write_str("the machine is too busy for it to run");
        }
        // Function of the kernel in which the thread waits, visible to root.
        let place = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan")).unwrap_or_default();
        if place.trim() == "__refrigerator" {
            return out.write_str("its control group is frozen: thaw it first");
        }
        out.write_str("it waits in the kernel for a child made by vfork, or for a disk")?;
        match place.trim() {
            "" | "0" => write!(out, " (state {state})"),
            place => write!(out, " (state {state}, in {place})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_names_the_thread_and_its_state() {
        let (pid, tid) = (std::process::id(), crate::ptrace::own_tid());
        let here = Restless::of(pid, tid).unwrap();
        assert!(here.waits_for_processor());
        let name = heapr_proc::thread_name(pid, tid).unwrap();
        assert_eq!(
            here.to_string(),
            format!("thread {tid} ({name}) did not stop: the machine is too busy for it to run")
        );
        let waiting = Restless { state: 'D', ..here };
        assert!(!waiting.waits_for_processor());
        let text = waiting.to_string();
        assert!(text.contains("waits in the kernel") && text.contains("(state D"), "{text}");
        assert!(waiting.no_moment(Duration::from_secs(5)).to_string().contains(&text));
        assert!(Restless::of(pid, u32::MAX).is_none());
    }
}
