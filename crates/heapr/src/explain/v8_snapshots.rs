//! Findings of V8 snapshots.

use std::path::PathBuf;

use super::answer::Subject;
use crate::snapshot::v8::heap_file::{Wanted, open};
use heapr_table::SortRows as _;

/// Explains one snapshot, or several of one program.
pub(super) fn explain(files: &[PathBuf]) -> anyhow::Result<Subject> {
    let mut files = files.to_vec();
    let written = |file: &PathBuf| file.metadata().and_then(|metadata| metadata.modified()).ok();
    if !files.is_sorted_by_key(written) {
        warn!("the snapshots are compared in the order in which their files were written");
        files.sort_rows_by_key(written);
    }
    let heaps =
        files.iter().map(|file| open(file, Wanted::Dominators)).collect::<anyhow::Result<Vec<_>>>()?;
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let heaps: Vec<&heapr_v8::devtools::Heap> = heaps.iter().map(|heap| &**heap).collect();
    let found = heapr_findings::of_v8_snapshots(&heaps, &names);
    Ok(Subject {
        name: names.join(", "),
        findings: found.findings,
        verdict: found.verdict,
        ..Subject::default()
    })
}
