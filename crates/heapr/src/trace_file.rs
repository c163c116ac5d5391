//! Opens traces.

use std::path::Path;

use heapr_export::Subject;
use heapr_symbols::OtherBuilds;
use heapr_trace::Trace;

/// Opens a trace, or another tool's file as one.
pub(crate) fn open(file: &Path) -> anyhow::Result<Trace> {
    heapr_import::open(file).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// Which of a trace's files are other builds now, in a sentence. (A file of another tool has names
/// and paths, and mostly no build-ids.)
pub(crate) fn other_builds(trace: &Trace) -> Option<String> {
    let modules = trace.modules().iter().map(|module| (module.path.as_str(), module.build_id.as_slice()));
    OtherBuilds::of(modules).sentence()
}

/// Says on standard error what is wrong with the recording.
pub(crate) fn tell_warnings(subject: &Subject) {
    for warning in &subject.warnings {
        warn!("{}: {warning}", subject.file);
    }
}
