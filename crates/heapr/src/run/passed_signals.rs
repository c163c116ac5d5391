//! Signals that are sent to `heapr run` and meant for its program.
//!
//! What the terminal sends (Ctrl-C, Ctrl-Z, a new size, its end) reaches the whole process group,
//! the program too: the kernel is the sender. What a process sends by `kill` reached heapr alone,
//! as far as can be known, and is passed on.

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

/// Those that are watched for. (SIGCHLD only wakes the recorder from its sleep.)
const WATCHED: [i32; 15] = [
    SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGURG, SIGWINCH,
    SIGTSTP, SIGCONT, SIGXCPU,
];

/// Those of them that a terminal sends.
const OF_TERMINAL: [i32; 6] = [SIGINT, SIGQUIT, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT];

/// What has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    /// A signal that was sent to heapr: the program is to get it.
    Signal(i32),
    /// One that the program has got itself.
    OfGroup(i32),
    /// The limit of processor time is near.
    TimeUsedUp,
}

/// So often it is looked whether the program obeys a stop.
const STOP_LOOKS: u32 = 100;

/// Watches for them.
#[derive(Debug)]
pub(crate) struct PassedSignals {
    signals: SignalsInfo<WithOrigin>,
    stop_looks: u32,
}

impl PassedSignals {
    /// From now on. A signal that is ignored (`nohup`, a job in the background) stays so, here and
    /// in the program, which would lose that by our having a handler for it.
    ///
    /// # Errors
    /// No descriptors are left.
    pub(crate) fn watch() -> io::Result<Self> {
        let ignored = ignored_signals();
        let watched = WATCHED.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        Ok(Self { signals: SignalsInfo::new(watched.chain([SIGCHLD]))?, stop_looks: 0 })
    }

    /// What has come since the last call, of a program that is process `pid`.
    pub(crate) fn pending(&mut self, pid: u32) -> Vec<Passed> {
        let passed = |origin: Origin| match origin.signal {
            SIGCHLD => None,
            SIGXCPU if !matches!(origin.cause, Cause::Sent(_)) => Some(Passed::TimeUsedUp),
            signal if OF_TERMINAL.contains(&signal) && !matches!(origin.cause, Cause::Sent(_)) => {
                Some(Passed::OfGroup(signal))
            }
            // (The kernel sends what somebody's `alarm` before the exec has asked for.)
            signal => Some(Passed::Signal(signal)),
        };
        let pending: Vec<Passed> = self.signals.pending().filter_map(passed).collect();
        if pending.iter().any(|passed| matches!(passed, Passed::Signal(SIGTSTP) | Passed::OfGroup(SIGTSTP))) {
            self.stop_looks = STOP_LOOKS;
        }
        // heapr stops when its program has: that would wait for a recorder that is stopped alone,
        // and may ignore the signal.
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

/// A bit for each signal, the first for signal 1.
fn ignored_signals() -> u64 {
    Fields::of_self().bits("SigIgn").unwrap_or(0)
}
