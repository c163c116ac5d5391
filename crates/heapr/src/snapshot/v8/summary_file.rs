//! Summaries of large snapshots in the user's cache directory: the second look at a file costs
//! nothing.

use std::path::Path;

use heapr_v8::{StoredSummary, SummaryStore};

use crate::snapshot::v8::index_cache;

/// The summary of an unchanged file that was read before, of all objects or of those that pass
/// filters.
pub(crate) fn load(file: &Path, part: &str) -> Option<StoredSummary> {
    let summary: StoredSummary = store_for(file)?.load(file, part)?;
    for problem in &summary.problems {
        warn!("{}: {problem}", file.display());
    }
    Some(summary)
}

/// Keeps a summary; a cache that cannot be written is no reason to fail.
pub(crate) fn store(file: &Path, part: &str, summary: &StoredSummary) {
    if let Some(store) = store_for(file) {
        let _ = store.store(file, part, summary);
    }
}

fn store_for(file: &Path) -> Option<SummaryStore> {
    Some(SummaryStore::new(index_cache::directory_for(file)?))
}
