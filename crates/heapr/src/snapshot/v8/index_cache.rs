//! Indexes of large snapshots in the user's cache directory: a second question on a file parses no
//! JSON.

use std::path::{Path, PathBuf};

use heapr_v8::devtools::Heap;
use heapr_v8::{Fingerprint, IndexStore, StoredSummary};

use heapr_filters::quantity::parse_bytes;

use crate::output::end_output;
use crate::snapshot::kept_folder::directory_of;
use crate::snapshot::managed::dump_file;
use crate::snapshot::verbs::is_trace;

/// Smallest snapshot with an index, in bytes; smaller ones are read as quickly.
const LEAST_BYTES: u64 = 8 << 20;
/// Smallest trace with an index, in bytes: its graph is a fraction of a V8 snapshot's size.
const LEAST_TRACE_BYTES: u64 = 512 << 10;
/// Environment variable with the largest size of all indexes, as in `4G`; 0 turns them off.
const SIZE_VARIABLE: &str = "HEAPR_INDEX_SIZE";

/// Returns the folder of saved answers, if `file` is large enough for them to pay.
pub(crate) fn directory_for(file: &Path) -> Option<PathBuf> {
    // Saved answers have the names alone.
    if dump_file::reads_texts() && dump_file::is_dump(file) {
        return None;
    }
    directory_of(file, if is_trace(file) { LEAST_TRACE_BYTES } else { LEAST_BYTES })
}

/// Returns the store of indexes, if `file` should have one.
pub(crate) fn store_for(file: &Path) -> Option<IndexStore> {
    let store = IndexStore::new(directory_for(file)?);
    match std::env::var(SIZE_VARIABLE).ok().and_then(|size| parse_bytes(&size).ok()) {
        Some(0) => None,
        Some(most_bytes) => Some(store.with_most_bytes(most_bytes)),
        None => Some(store),
    }
}

/// Index that is written after the answer.
pub(crate) struct PendingIndex {
    store: IndexStore,
    file: PathBuf,
    fingerprint: Fingerprint,
}

impl PendingIndex {
    /// Prepares the index of a file that is about to be read.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        Some(Self {
            store: store_for(file)?,
            file: file.to_owned(),
            fingerprint: Fingerprint::of(file).ok()?,
        })
    }

    /// Writes the index. Output ends before, so that its reader need not wait. Errors of the cache
    /// are ignored.
    pub(crate) fn write(self, heap: &Heap, summary: &StoredSummary) {
        end_output();
        let _ = self.store.store(&self.file, &self.fingerprint, heap, summary);
    }
}
