//! End of a process, as wait(2) tells it.

use serde::{Deserialize, Serialize};

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Ending {
    /// Process that called exit.
    Exited {
        /// Exit status.
        status: i32,
    },
    /// Process that a signal ended.
    Signalled {
        /// Number of the signal.
        signal: i32,
        /// Whether the kernel wrote a core file.
        has_core: bool,
    },
    /// Process whose exit status could not be read.
    #[default]
    Unknown,
}

/// Signals that end a process in order: SIGHUP, SIGINT, SIGTERM.
const ORDERLY: [i32; 3] = [1, 2, 15];
/// Number of SIGKILL.
const KILL: i32 = 9;

impl Ending {
    /// Parses a status in the form of wait(2); `None`: unknown.
    #[must_use]
    pub fn of_wait_status(status: Option<i32>) -> Self {
        const CORE: i32 = 0x80;
        const SIGNAL: i32 = 0x7f;
        match status {
            None => Self::Unknown,
            Some(status) if status & SIGNAL == 0 => Self::Exited { status: status >> 8 & 0xff },
            Some(status) => Self::Signalled { signal: status & SIGNAL, has_core: status & CORE != 0 },
        }
    }

    /// Whether the process ended as it or its user wanted: with status 0, or by a request to end.
    #[must_use]
    pub fn is_orderly(self) -> bool {
        match self {
            Self::Exited { status } => status == 0,
            Self::Signalled { signal, .. } => ORDERLY.contains(&signal),
            Self::Unknown => false,
        }
    }

    /// True for an end by SIGPIPE: the reader of what the process writes has gone.
    #[must_use]
    pub fn is_of_pipe(self) -> bool {
        const PIPE: i32 = 13;
        matches!(self, Self::Signalled { signal: PIPE, .. })
    }

    /// True for an end by SIGKILL.
    #[must_use]
    pub fn is_kill(self) -> bool {
        matches!(self, Self::Signalled { signal: KILL, .. })
    }
}

/// Name of a signal, such as `SIGSEGV`; `signal N` for one without a name.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    const NAMES: [(i32, &str); 13] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (5, "SIGTRAP"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (15, "SIGTERM"),
        (31, "SIGSYS"),
    ];
    let known = NAMES.iter().find(|(number, _)| *number == signal);
    known.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_status_is_an_exit_or_a_signal() {
        assert_eq!(Ending::of_wait_status(Some(0x0300)), Ending::Exited { status: 3 });
        assert_eq!(Ending::of_wait_status(Some(9)), Ending::Signalled { signal: 9, has_core: false });
        assert_eq!(Ending::of_wait_status(Some(0x86)), Ending::Signalled { signal: 6, has_core: true });
        assert_eq!(Ending::of_wait_status(None), Ending::Unknown);
        assert!(
            Ending::of_wait_status(Some(0)).is_orderly() && Ending::of_wait_status(Some(15)).is_orderly()
        );
        assert!(!Ending::of_wait_status(Some(9)).is_orderly() && Ending::of_wait_status(Some(9)).is_kill());
        assert_eq!([signal_name(11), signal_name(64)], ["SIGSEGV", "signal 64"]);
    }
}
