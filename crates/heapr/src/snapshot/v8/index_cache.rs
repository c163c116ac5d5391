//! Indexes of large snapshots in the user's cache directory: the second question about a file reads
//! no text.

use std::path::{Path, PathBuf};

use heapr_v8::devtools::Heap;
use heapr_v8::{Fingerprint, IndexStore, StoredSummary};

use heapr_filters::quantity::parse_bytes;

use crate::output::end_output;
use crate::snapshot::kept_folder::directory_of;
use crate::snapshot::verbs::is_trace;

/// Smaller files are read as quickly.
const LEAST_BYTES: u64 = 8 << 20;
/// A trace keeps a graph in a small part of what a snapshot of V8's takes.
const LEAST_TRACE_BYTES: u64 = 512 << 10;
/// How much the indexes may take together, as `4G`; 0 turns them off.
const SIZE_VARIABLE: &str = "HEAPR_INDEX_SIZE";

/// The directory of what is kept about snapshots, if `file` is large enough for it to pay.
pub(crate) fn directory_for(file: &Path) -> Option<PathBuf> {
    directory_of(file, if is_trace(file) { LEAST_TRACE_BYTES } else { LEAST_BYTES })
}

/// The indexes, if `file` is to have one.
pub(crate) fn store_for(file: &Path) -> Option<IndexStore> {
    let store = IndexStore::new(directory_for(file)?);
    match std::env::var(SIZE_VARIABLE).ok().and_then(|size| parse_bytes(&size).ok()) {
        Some(0) => None,
        Some(most_bytes) => Some(store.with_most_bytes(most_bytes)),
        None => Some(store),
    }
}

/// An index that is written when the answer is out.
pub(crate) struct PendingIndex {
    store: IndexStore,
    file: PathBuf,
    fingerprint: Fingerprint,
}

impl PendingIndex {
    /// Of a file that is about to be read.
    pub(crate) fn of(file: &Path) -> Option<Self> {
        Some(Self {
            store: store_for(file)?,
            file: file.to_owned(),
            fingerprint: Fingerprint::of(file).ok()?,
        })
    }

    /// Writes it. Whoever reads our output need not wait for that: the output ends before. A cache
    /// that cannot be written is no reason to fail.
    pub(crate) fn write(self, heap: &Heap, summary: &StoredSummary) {
        end_output();
        let _ = self.store.store(&self.file, &self.fingerprint, heap, summary);
    }
}
