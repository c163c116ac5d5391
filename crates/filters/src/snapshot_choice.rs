//! Choice of a snapshot in a file.

use anyhow::bail;
use heapr_trace::{Snapshot, Trace};

/// Finds a snapshot by number, by name (the last one of that name), or as `last`.
///
/// # Errors
/// The trace does not have the snapshot.
pub fn find_snapshot<'t>(trace: &'t Trace, text: &str) -> anyhow::Result<&'t Snapshot> {
    let snapshots = trace.snapshots();
    let Some(last) = snapshots.last() else {
        bail!(
            "the file has no snapshots: `heapr run --snapshot-every SECONDS` and `heapr snapshot take PID` take some"
        );
    };
    if let Some(named) = snapshots.iter().rfind(|snapshot| !text.is_empty() && snapshot.name == text) {
        return Ok(named);
    }
    if text.eq_ignore_ascii_case("last") {
        return Ok(last);
    }
    let number = text.parse().ok().and_then(|number| trace.snapshot(number));
    let Some(snapshot) = number else {
        let (first, last) = (snapshots[0].number, last.number);
        bail!(
            "no snapshot {text:?}: the file has {first} to {last}; `heapr snapshot summary FILE` lists them"
        );
    };
    Ok(snapshot)
}
