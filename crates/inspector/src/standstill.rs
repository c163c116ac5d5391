//! Processes whose main thread does not run: they answer only when they continue, if ever.

use std::fmt;
use std::fs;
use std::time::Duration;

use heapr_proc::{Fields, Stat};

/// Reason why the main thread of a process does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standstill {
    /// The process was stopped by a signal.
    Stopped,
    /// Another process traces it, and receives its signals first.
    Traced {
        /// Process id of the tracer.
        tracer: u32,
        /// Name of the tracer.
        name: String,
    },
    /// The control group of the process is frozen.
    Frozen,
    /// The thread waits in the kernel for an event that no signal interrupts.
    Uninterruptible,
}

impl fmt::Display for Standstill {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => out.write_str("is stopped (by Ctrl-Z or SIGSTOP): let it go on with SIGCONT"),
            Self::Traced { tracer, name } => {
                write!(
                    out,
                    "is traced by process {tracer} ({name}), which gets its signals first: detach that one"
                )
            }
            Self::Frozen => {
                out.write_str("is frozen with its control group, as a paused container is: thaw it")
            }
            Self::Uninterruptible => out.write_str(
                "waits in the kernel (for a disk or a network file system): try again when it goes on",
            ),
        }
    }
}

/// Examines a process, without sending anything to it.
pub(crate) fn of(pid: u32) -> Option<Standstill> {
    /// Number of checks; a wait for a disk ends earlier.
    const LOOKS: u32 = 20;
    const BETWEEN: Duration = Duration::from_millis(25);
    let state = || Stat::of_process(pid).map_or('?', |stat| stat.state());
    // Run time and page faults. They increase in a process that repeatedly waits for the disk but
    // makes progress.
    let progress = || Stat::of_process(pid).map(|stat| [10, 12, 14, 15].map(|number| stat.number(number)));
    let now = state();
    if let Some(traced) = tracer(pid) {
        return Some(traced);
    }
    if now == 'T' {
        return Some(Standstill::Stopped);
    }
    let waits_in = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
    if ["freezer", "refrigerator"].iter().any(|part| waits_in.contains(part)) {
        return Some(Standstill::Frozen);
    }
    let before = progress();
    let is_uninterruptible = now == 'D'
        && (0..LOOKS).all(|_| {
            std::thread::sleep(BETWEEN);
            state() == 'D' && progress() == before
        });
    is_uninterruptible.then_some(Standstill::Uninterruptible)
}

/// Returns the debugger of a process. Tools that only observe pass signals on immediately.
fn tracer(pid: u32) -> Option<Standstill> {
    const LOOKING_ON: [&str; 2] = ["strace", "ltrace"];
    let status = Fields::of_process(pid).ok()?;
    let tracer = status.number("TracerPid").filter(|&tracer| tracer != 0)?;
    let name = fs::read_to_string(format!("/proc/{tracer}/comm")).unwrap_or_default().trim_end().to_owned();
    let is_stopped = status.text("State").is_some_and(|state| state.starts_with('t'));
    (is_stopped || !LOOKING_ON.contains(&name.as_str())).then_some(Standstill::Traced { tracer, name })
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn signal(child: &Child, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    #[test]
    fn a_stopped_process_is_told_from_one_that_sleeps() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        assert_eq!(of(child.id()), None);
        signal(&child, rustix::process::Signal::STOP);
        while of(child.id()).is_none() {
            std::thread::yield_now();
        }
        assert_eq!(of(child.id()), Some(Standstill::Stopped));
        signal(&child, rustix::process::Signal::CONT);
        while of(child.id()).is_some() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
