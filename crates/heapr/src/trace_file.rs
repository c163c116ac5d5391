//! Opens traces.

use std::path::Path;

use heapr_export::Subject;
use heapr_trace::Trace;

/// Opens a trace, or another tool's file as one.
pub(crate) fn open(file: &Path) -> anyhow::Result<Trace> {
    heapr_import::open(file).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// Says on standard error what is wrong with the recording.
pub(crate) fn tell_warnings(subject: &Subject) {
    for warning in &subject.warnings {
        warn!("{}: {warning}", subject.file);
    }
}
