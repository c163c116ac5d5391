//! Signals of a program that owns the screen.

use std::sync::mpsc::{Receiver, channel};

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

/// Meaning of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// The view is to end.
    End,
    /// The program is to stop.
    Suspend,
    /// The program goes on after a stop; the screen is another's.
    Resumed,
}

/// Starts to watch for signals.
pub(super) fn watch() -> anyhow::Result<Receiver<Told>> {
    let mut signals =
        signal_hook::iterator::Signals::new([SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP])?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let told = match signal {
                SIGTSTP => Told::Suspend,
                SIGCONT => Told::Resumed,
                // The terminal is lost, and reading keys from it would never end. The recorder ends
                // a session that depends on this process.
                SIGHUP => std::process::exit(128 + SIGHUP),
                _ => Told::End,
            };
            if sender.send(told).is_err() {
                return;
            }
        }
    });
    Ok(receiver)
}
