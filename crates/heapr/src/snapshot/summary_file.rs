//! Summaries of large snapshots in the user's cache directory: the second look at a file costs nothing.

use std::path::{Path, PathBuf};

use heapr_v8::{StoredSummary, SummaryStore};

/// Smaller files are read as quickly.
const LEAST_BYTES: u64 = 8 << 20;

/// The summary of an unchanged file that was read before.
pub(crate) fn load(file: &Path) -> Option<StoredSummary> {
    let summary = store_for(file)?.load(file)?;
    for problem in &summary.problems {
        eprintln!("heapr: warning: {}: {problem}", file.display());
    }
    Some(summary)
}

/// Keeps a summary; a cache that cannot be written is no reason to fail.
pub(crate) fn store(file: &Path, summary: &StoredSummary) {
    if let Some(store) = store_for(file) {
        let _ = store.store(file, summary);
    }
}

fn store_for(file: &Path) -> Option<SummaryStore> {
    let metadata = std::fs::metadata(file).ok()?;
    if !metadata.is_file() || metadata.len() < LEAST_BYTES {
        return None;
    }
    let absolute =
        |variable: &str| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(SummaryStore::new(cache.join("heapr/snapshots")))
}
