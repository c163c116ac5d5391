//! Progress bar on standard error, for work that takes over a second, on a terminal only.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::busy_line;

/// Progress bar that is erased when it is dropped.
#[derive(Debug)]
pub(crate) struct ProgressBar {
    what: &'static str,
    started: Instant,
    shown: Option<Instant>,
    is_terminal: bool,
}

/// Time after which the bar appears.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between two drawings.
const PERIOD: Duration = Duration::from_millis(100);
/// Characters of the bar.
const WIDTH: usize = 40;

impl ProgressBar {
    pub(crate) fn new(what: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self { what, started: Instant::now(), shown: None, is_terminal }
    }

    /// Shows that `done` of `all` parts are done.
    pub(crate) fn show(&mut self, done: usize, all: usize) {
        let is_due = self.shown.map_or(self.started.elapsed() >= PATIENCE, |shown| shown.elapsed() >= PERIOD);
        if !self.is_terminal || !is_due || all == 0 {
            return;
        }
        if self.shown.is_none() {
            busy_line::give_way(true);
        }
        self.shown = Some(Instant::now());
        // Errors of drawing are ignored.
        let _ = write!(std::io::stderr(), "\r{}", line(self.what, done, all));
    }
}

impl Drop for ProgressBar {
    fn drop(&mut self) {
        if self.shown.is_some() {
            busy_line::give_way(false);
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(what: &str, done: usize, all: usize) -> String {
    let done = done.min(all);
    let filled = done * WIDTH / all;
    format!("{what} [{}{}] {:3} %", "#".repeat(filled), " ".repeat(WIDTH - filled), done * 100 / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_as_long_at_the_start_as_at_the_end() {
        assert_eq!(line("x", 0, 7), format!("x [{}]   0 %", " ".repeat(40)));
        assert_eq!(line("x", 7, 7), format!("x [{}] 100 %", "#".repeat(40)));
        assert_eq!(line("x", 9, 7), line("x", 7, 7));
    }
}
