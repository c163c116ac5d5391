//! Line on a terminal that shows how long work has taken so far.

use std::io::{IsTerminal as _, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use heapr_table::plain::one_line;

use crate::busy_line;
use crate::plain_text::error_line_width;

/// Time after which the line appears.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time between two updates.
const EVERY: Duration = Duration::from_millis(500);

/// Line on standard error, if that is a terminal. It is erased when this is dropped.
#[derive(Debug)]
pub(super) struct ElapsedLine {
    /// Sender whose end stops the thread, and the thread.
    drawn_by: Option<(Sender<()>, JoinHandle<()>)>,
}

impl ElapsedLine {
    /// Starts to count the time of `what`, a phrase as `reading a.heapr`.
    pub(super) fn new(what: String) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { drawn_by: None };
        }
        let begun = Instant::now();
        let (sender, ended) = channel::<()>();
        let draw = move || {
            let mut wait = PATIENCE;
            let mut has_shown = false;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                (wait, has_shown) = (EVERY, true);
                draw(&line(&what, begun.elapsed()));
            }
            if has_shown {
                draw("");
            }
        };
        // Without a thread there is no line, and the work is done all the same.
        let thread = std::thread::Builder::new().name("heapr-elapsed".to_owned()).spawn(draw);
        let drawn_by = thread.ok().map(|thread| (sender, thread));
        if drawn_by.is_some() {
            busy_line::give_way(true);
        }
        Self { drawn_by }
    }
}

impl Drop for ElapsedLine {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.drawn_by.take() {
            drop(sender);
            let _ = thread.join();
            busy_line::give_way(false);
        }
    }
}

/// Replaces the line. Errors of drawing are ignored.
fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r\x1b[K{}", one_line(text, error_line_width()));
    let _ = stderr.flush();
}

fn line(what: &str, elapsed: Duration) -> String {
    format!("heapr: {what}, {} s so far", elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_done_and_for_how_long() {
        assert_eq!(
            line("reading a.heapr", Duration::from_millis(3700)),
            "heapr: reading a.heapr, 3 s so far"
        );
    }
}
