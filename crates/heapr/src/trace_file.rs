//! Opens traces, and prints their warnings.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use heapr_export::Subject;
use heapr_symbols::OtherBuilds;
use heapr_trace::Trace;

/// Opens a trace, or a file of another tool converted to one.
pub(crate) fn open(file: &Path) -> anyhow::Result<Trace> {
    heapr_import::open(file).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

/// Returns the trace that a command reads: `named`, or else the newest trace in this folder, whose
/// name is printed.
///
/// # Errors
/// Without a name, this folder must have a trace. `command` is named in the message.
pub(crate) fn named_or_newest(named: Option<PathBuf>, command: &str) -> anyhow::Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named);
    }
    let newest = newest_traces(Path::new(".")).into_iter().next();
    let newest =
        newest.with_context(|| format!("no trace given, and none in this folder: heapr {command} FILE"))?;
    tell!("heapr: the newest trace here: {}", newest.display());
    Ok(newest)
}

/// Returns the traces in a folder, the newest first.
pub(crate) fn newest_traces(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut traces: Vec<(std::time::SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let is_trace = path.extension().is_some_and(|extension| extension == "heapr") && path.is_file();
            is_trace.then_some((path.metadata().and_then(|metadata| metadata.modified()).ok()?, path))
        })
        .collect();
    traces.sort_unstable();
    let short = |path: PathBuf| path.strip_prefix(".").map(Path::to_owned).unwrap_or(path);
    traces.into_iter().rev().map(|(_, path)| short(path)).collect()
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
