//! Opens traces, and prints their warnings.

use std::path::Path;

use heapr_export::Subject;
use heapr_symbols::OtherBuilds;
use heapr_trace::Trace;

/// Opens a trace, or a file of another tool converted to one.
pub(crate) fn open(file: &Path) -> anyhow::Result<Trace> {
    heapr_import::open(file).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// Returns a sentence on modules whose files are other builds than the recorded ones. Files of
/// other tools have paths, and mostly no build-ids.
pub(crate) fn other_builds(trace: &Trace) -> Option<String> {
    let modules = trace.modules().iter().map(|module| (module.path.as_str(), module.build_id.as_slice()));
    OtherBuilds::of(modules).sentence()
}

/// Prints on standard error what is wrong with the recording.
pub(crate) fn tell_warnings(subject: &Subject) {
    for warning in &subject.warnings {
        warn!("{}: {warning}", subject.file);
    }
}
