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
        self.view_or_read_by(snapshot, || Snapshot::open(snapshot, options))
    }

    /// Returns the view of `snapshot` as [`Self::view_or_read`] does. `read` reads a file without
    /// an index, which may be of another format.
    ///
    /// # Errors
    /// Those of `read`, and a file that cannot be examined.
    pub fn view_or_read_by<E: From<Error>>(
        &self,
        snapshot: &Path,
        read: impl FnOnce() -> std::result::Result<Snapshot, E>,
    ) -> std::result::Result<SnapshotView, E> {
        if let Some(view) = self.view(snapshot) {
            return Ok(view);
        }
        let before = Fingerprint::of(snapshot).map_err(|source| Error::Io { offset: 0, source })?;
        let heap = Heap::with_summary(read()?)?;
        let is_stored = self.store(snapshot, &before, &heap, &StoredSummary::of(&heap)).unwrap_or(false);
        let view = if is_stored { self.view(snapshot) } else { None };
        Ok(view.unwrap_or_else(|| SnapshotView::of_heap(Arc::new(heap))))
    }
}
