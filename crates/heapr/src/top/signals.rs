//! Signals of a program that owns the screen, and the loss of its terminal.

use std::io::IsTerminal as _;
use std::process::exit;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use heapr_proc::Fields;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::low_level::emulate_default_handler;

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

/// Time that the view has to end after a signal. Then the program ends without it: a view that
/// waits for its terminal must not keep a process recorded.
const ENDING: Duration = Duration::from_secs(5);

/// Starts to watch for signals, and for the loss of the terminal.
pub(super) fn watch() -> anyhow::Result<Receiver<Told>> {
    if std::io::stdout().is_terminal() {
        std::thread::spawn(end_without_a_terminal);
    }
    // A signal that the starter ignores, as nohup does, stays so. Bit 0 is signal 1.
    let ignored = Fields::of_self().bits("SigIgn").unwrap_or(0);
    let watched = [SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP];
    let watched = watched.into_iter().filter(|signal| (ignored >> (signal - 1)) & 1 == 0);
    let mut signals = signal_hook::iterator::Signals::new(watched)?;
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let told = match signal {
                SIGTSTP => Told::Suspend,
                SIGCONT => Told::Resumed,
                // The terminal is lost, and reading keys from it would never end. The recorder ends
                // a session that depends on this process.
                SIGHUP => exit(128 + SIGHUP),
                _ => {
                    std::thread::spawn(move || {
                        std::thread::sleep(ENDING);
                        exit(128 + signal);
                    });
                    Told::End
                }
            };
            // The view has ended, and no signal is to wait for the end of its session.
            if sender.send(told).is_err() {
                match told {
                    Told::End => exit(128 + signal),
                    Told::Suspend => drop(emulate_default_handler(SIGTSTP)),
                    Told::Resumed => {}
                }
            }
        }
    });
    Ok(receiver)
}

/// Ends the program once the other side of its terminal is closed. The kernel sends no signal for
/// it to a program whose controlling terminal is another one.
fn end_without_a_terminal() {
    let screen = std::io::stdout();
    let mut screens = [PollFd::new(&screen, PollFlags::empty())];
    loop {
        match poll(&mut screens, None) {
            Ok(_) if !screens[0].revents().is_empty() => exit(128 + SIGHUP),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
