//! Directory of index files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cache_folder::CacheFolder;
use crate::devtools::Heap;
use crate::fingerprint::Fingerprint;
use crate::index::heap_columns;
use crate::index::stored_graph::StoredGraph;
use crate::stored_summary::StoredSummary;

/// Directory of bounded size with indexes of snapshots.
#[derive(Debug, Clone)]
pub struct IndexStore {
    folder: CacheFolder,
}

/// Largest size of all indexes together by default, in bytes. An index is a quarter larger than a
/// snapshot of small objects.
const DEFAULT_MOST_BYTES: u64 = 16 << 30;

impl IndexStore {
    /// Creates a store in `directory`, which need not exist yet.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self { folder: CacheFolder::new(directory.into(), "heapr-index", DEFAULT_MOST_BYTES) }
    }

    /// Returns the store with another size limit for all indexes together.
    pub fn with_most_bytes(self, most_bytes: u64) -> Self {
        Self { folder: self.folder.with_most_bytes(most_bytes) }
    }

    /// Opens the index of `snapshot`, if it exists and the snapshot file is unchanged.
    pub fn open(&self, snapshot: &Path) -> Option<StoredGraph> {
        let entry = self.folder.entry(snapshot, "")?;
        let stored = StoredGraph::open(self.folder.open(&entry)?).ok()??;
        if Fingerprint::of(snapshot).ok()? != stored.directory.fingerprint {
            return None;
        }
        self.folder.touch(&entry);
        Some(stored)
    }

    /// Writes the index of `snapshot`. `heap` was read from it when its fingerprint was `read`.
    /// Returns whether the index was written.
    pub fn store(
        &self,
        snapshot: &Path,
        read: &Fingerprint,
        heap: &Heap,
        summary: &StoredSummary,
    ) -> io::Result<bool> {
        let Some(entry) = self.folder.entry(snapshot, "") else { return Ok(false) };
        if heap.snapshot().trace().is_some() {
            return Ok(false);
        }
        let Some(file) = self.folder.new_file(&entry, heap_columns::estimated_bytes(heap))? else {
            return Ok(false);
        };
        // A file that changed in the meantime is not the one that was read.
        if Fingerprint::of(snapshot)? != *read {
            return Ok(false);
        }
        heap_columns::write(file.try_clone()?, heap, summary, read.clone())?;
        file.keep_unsynced()?;
        Ok(true)
    }

    /// Removes the index of `snapshot`, for example because it is damaged.
    pub fn forget(&self, snapshot: &Path) {
        if let Some(entry) = self.folder.entry(snapshot, "") {
            let _ = fs::remove_file(entry);
        }
    }
}
