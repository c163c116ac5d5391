//! Processes whose main thread does not run: what is sent to them is answered when they go on, if
//! ever.

use std::fmt;
use std::fs;
use std::time::Duration;

use heapr_proc::{Fields, Stat};

/// What keeps the main thread of a process from running.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standstill {
    /// A signal has stopped it.
    Stopped,
    /// Another process traces it, and gets its signals first.
    Traced {
        /// The process id of the tracer.
        tracer: u32,
        /// Its name.
        name: String,
    },
    /// Its control group is frozen.
    Frozen,
    /// It waits in the kernel for something that no signal ends.
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

/// Looks at a process, which is sent nothing.
pub(crate) fn of(pid: u32) -> Option<Standstill> {
    /// A wait for a disk is over before.
    const LOOKS: u32 = 20;
    const BETWEEN: Duration = Duration::from_millis(25);
    let state = || Stat::of_process(pid).map_or('?', |stat| stat.state());
    // Run time and page faults: who waits for the disk again and again does get on.
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

/// The debugger of a process. Those that only look on pass signals on at once.
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
