//! Line that shows the progress of a recording while the program runs.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use heapr_session::{Progress, Session};
use heapr_table::quantity::{count, duration};

/// Time between two updates.
const EVERY: Duration = Duration::from_millis(500);

/// Names the file on a terminal. It is called before the program writes anything there.
pub(super) fn announce(is_quiet: bool, output: &Path) {
    if !is_quiet && std::io::stderr().is_terminal() {
        tell!("heapr: recording into {}", output.display());
    }
}

/// Line on standard error. It is shown if that is a terminal and the program's output goes
/// elsewhere; otherwise the program would overwrite it.
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

    /// Shows the session's state, unless it did so less than `EVERY` ago.
    pub(super) fn show(&mut self, session: &Session) {
        if !self.is_shown || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        self.has_shown = true;
        let elapsed_ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        eprint!("\r\x1b[K{}", line(elapsed_ns, session.progress()));
        let _ = std::io::stderr().flush();
    }
}

fn line(elapsed_ns: u64, progress: Progress) -> String {
    format!(
        "heapr: {}  {} events  live {}  peak {}",
        duration(elapsed_ns / 100_000_000 * 100_000_000),
        count(progress.event_count),
        progress.live.bytes_in_words(),
        progress.peak.bytes_in_words()
    )
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.has_shown {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use heapr_trace::{BlockEstimate, Estimate};

    use super::*;

    #[test]
    fn what_is_estimated_has_its_interval() {
        let of =
            |value, variance| BlockEstimate { bytes: Estimate::new(value, variance), ..Default::default() };
        let counted = Progress { event_count: 1234, live: of(3 << 20, 0), peak: of(5 << 20, 0) };
        assert_eq!(
            line(1_550_000_000, counted),
            "heapr: 1.500 s  1,234 events  live 3.00 MiB  peak 5.00 MiB"
        );
        // 1.96 * 512 KiB, 1.96 * 256 KiB.
        let sampled = Progress { live: of(3 << 20, 1 << 18), peak: of(5 << 20, 1 << 16), ..counted };
        assert_eq!(
            line(1_550_000_000, sampled),
            "heapr: 1.500 s  1,234 events  live 3.00 MiB ± 0.98 MiB  peak 5.00 MiB ± 501.8 KiB"
        );
    }
}
