//! Summaries of large snapshots in the user's cache directory, so that a second summary is instant.

use std::path::Path;

use heapr_v8::{StoredSummary, SummaryStore};

use crate::snapshot::v8::index_cache;

/// Loads the summary of an unchanged file, of all objects or of those that pass the filters named
/// by `part`.
pub(crate) fn load(file: &Path, part: &str) -> Option<StoredSummary> {
    let summary: StoredSummary = store_for(file)?.load(file, part)?;
    for problem in &summary.problems {
        warn!("{}: {problem}", file.display());
    }
    Some(summary)
}

/// Saves a summary; errors of the cache are ignored.
pub(crate) fn store(file: &Path, part: &str, summary: &StoredSummary) {
    if let Some(store) = store_for(file) {
        let _ = store.store(file, part, summary);
    }
}

fn store_for(file: &Path) -> Option<SummaryStore> {
    Some(SummaryStore::new(index_cache::directory_for(file)?))
}
