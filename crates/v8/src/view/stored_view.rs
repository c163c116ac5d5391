//! Views of snapshots from a directory of indexes.

use std::path::Path;
use std::sync::Arc;

use crate::devtools::Heap;
use crate::view::SnapshotView;
use crate::{Error, Fingerprint, IndexStore, ReadOptions, Result, Snapshot, StoredSummary};

impl IndexStore {
    /// Returns the view of `snapshot` from its index, if that exists.
    pub fn view(&self, snapshot: &Path) -> Option<SnapshotView> {
        Some(SnapshotView::of_index(Arc::new(self.open(snapshot)?)))
    }

    /// Returns the view of `snapshot` from its index, which is written first if it does not exist.
    /// If it cannot be written, the view is of the heap in memory.
    pub fn view_or_read(&self, snapshot: &Path, options: &ReadOptions<'_>) -> Result<SnapshotView> {
        if let Some(view) = self.view(snapshot) {
            return Ok(view);
        }
        let read = Fingerprint::of(snapshot).map_err(|source| Error::Io { offset: 0, source })?;
        let heap = Heap::with_summary(Snapshot::open(snapshot, options)?)?;
        let is_stored = self.store(snapshot, &read, &heap, &StoredSummary::of(&heap)).unwrap_or(false);
        let view = if is_stored { self.view(snapshot) } else { None };
        Ok(view.unwrap_or_else(|| SnapshotView::of_heap(Arc::new(heap))))
    }
}
