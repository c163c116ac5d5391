//! The summary that `heapr run` prints on stderr.

use std::path::Path;
use std::process::ExitStatus;

use heapr_session::SessionSummary;

/// Prints it.
pub(crate) fn print(ended: &SessionSummary, output: &Path, _status: ExitStatus) {
    let totals = &ended.summary.totals;
    eprintln!(
        "heapr: {} events in {:.3} s, {} lost; peak {} bytes at {:.3} s; {} bytes in {} blocks outstanding",
        ended.summary.event_count,
        ended.wall.as_secs_f64(),
        ended.statistics.loss.events_lost,
        totals.peak_bytes,
        totals.peak_time_ns as f64 / 1e9,
        totals.outstanding_bytes,
        totals.outstanding_count,
    );
    eprintln!("heapr: {} — `heapr report {}` says more", output.display(), output.display());
}
