//! Signals that are sent to `heapr run` and meant for its program.
//!
//! Signals of the terminal (Ctrl-C, Ctrl-Z, a new size, its end) come from the kernel, and reach
//! the whole process group, the program too. A signal that a process sends by `kill` is assumed to
//! have reached heapr alone, and is passed on.

use std::io;

use heapr_proc::{Fields, Stat};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{
    SIGALRM, SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGIO, SIGPROF, SIGQUIT, SIGTERM, SIGTSTP, SIGURG, SIGUSR1,
    SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU,
};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::{Cause, Origin};

/// Signals that are watched. SIGCHLD, added later, only wakes the recorder from its sleep.
const WATCHED: [i32; 15] = [
    SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGURG, SIGWINCH,
    SIGTSTP, SIGCONT, SIGXCPU,
];

/// Watched signals that a terminal sends.
const OF_TERMINAL: [i32; 6] = [SIGINT, SIGQUIT, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT];

/// Signal that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// Signal sent to heapr, which is passed on to the program.
    Signal(i32),
    /// Signal that the program has received itself.
    OfGroup(i32),
    /// The limit of processor time is near.
    TimeUsedUp,
}

/// Number of checks whether the program has stopped, after a stop was passed on.
const STOP_LOOKS: u32 = 100;

/// Watch for signals.
#[derive(Debug)]
pub(crate) struct PassedSignals {
    signals: SignalsInfo<WithOrigin>,
    stop_looks: u32,
}

impl PassedSignals {
    /// Begins to watch. An ignored signal (`nohup`, a job in the background) stays ignored, because
    /// a handler here would end that in the program too.
    ///
    /// # Errors
    /// No descriptors are left.
    pub(crate) fn watch() -> io::Result<Self> {
        let ignored = ignored_signals();
        let watched = WATCHED.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        Ok(Self { signals: SignalsInfo::new(watched.chain([SIGCHLD]))?, stop_looks: 0 })
    }

    /// Returns the signals since the previous call, for a program that is process `pid`.
    pub(crate) fn pending(&mut self, pid: u32) -> Vec<Passed> {
        let passed = |origin: Origin| match origin.signal {
            SIGCHLD => None,
            SIGXCPU if !matches!(origin.cause, Cause::Sent(_)) => Some(Passed::TimeUsedUp),
            signal if OF_TERMINAL.contains(&signal) && !matches!(origin.cause, Cause::Sent(_)) => {
                Some(Passed::OfGroup(signal))
            }
            // A signal from the kernel may be that of an `alarm` before the exec.
            signal => Some(Passed::Signal(signal)),
        };
        let pending: Vec<Passed> = self.signals.pending().filter_map(passed).collect();
        if pending.iter().any(|passed| matches!(passed, Passed::Signal(SIGTSTP) | Passed::OfGroup(SIGTSTP))) {
            self.stop_looks = STOP_LOOKS;
        }
        // heapr stops once its program has stopped. A program that ignored the signal would
        // otherwise wait for a stopped recorder.
        if self.stop_looks > 0 {
            self.stop_looks -= 1;
            if is_stopped(pid) {
                self.stop_looks = 0;
                let _ = emulate_default_handler(SIGTSTP);
            }
        }
        pending
    }

    /// Sends a signal to the program.
    pub(crate) fn pass_on(&mut self, pid: u32, signal: i32) {
        // `fg` continues the whole job.
        if signal == SIGCONT && !is_stopped(pid) {
            return;
        }
        let target = Pid::from_raw(pid.cast_signed());
        if let (Some(target), Some(signal)) = (target, Signal::from_named_raw(signal)) {
            let _ = kill_process(target, signal);
        }
    }
}

fn is_stopped(pid: u32) -> bool {
    Stat::of_process(pid).is_some_and(|stat| stat.state() == 'T')
}

/// Returns the ignored signals as a bit set; bit 0 is signal 1.
fn ignored_signals() -> u64 {
    Fields::of_self().bits("SigIgn").unwrap_or(0)
}
