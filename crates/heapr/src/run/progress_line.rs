//! A line that tells how far a recording is while the program runs.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use heapr_session::Session;
use heapr_table::quantity::{bytes, count, duration};

/// Time between two lines.
const EVERY: Duration = Duration::from_millis(500);

/// Shown on standard error where that is a terminal and the program's output goes elsewhere: it
/// would be written over otherwise.
#[derive(Debug)]
pub(super) struct ProgressLine {
    is_shown: bool,
    has_shown: bool,
    begun: Instant,
    next: Instant,
}

impl ProgressLine {
    pub(super) fn new(is_quiet: bool) -> Self {
        let now = Instant::now();
        let is_shown = !is_quiet && std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        Self { is_shown, has_shown: false, begun: now, next: now + EVERY }
    }

    /// Shows how the session stands, unless it did so a moment ago.
    pub(super) fn show(&mut self, session: &Session) {
        if !self.is_shown || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        self.has_shown = true;
        let (event_count, live_bytes, peak_bytes) = session.progress();
        let elapsed_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        eprint!(
            "\r\x1b[Kheapr: {}  {} events  live {}  peak {}",
            duration(elapsed_ns / 100_000_000 * 100_000_000),
            count(event_count),
            bytes(live_bytes),
            bytes(peak_bytes)
        );
        let _ = std::io::stderr().flush();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.has_shown {
            eprint!("\r\x1b[K");
        }
    }
}
