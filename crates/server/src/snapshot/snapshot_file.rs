//! A snapshot that is open.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use heapr_v8::devtools::Heap;
use heapr_v8::{Error, ReadOptions, Snapshot, StoredSummary};
use serde_json::{Value, json};

/// See the module.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) path: PathBuf,
    pub(crate) heap: Heap,
    summary: OnceLock<StoredSummary>,
}

impl SnapshotFile {
    /// Reads it; an error with its offset, where that is known.
    pub(crate) fn open(path: &Path) -> Result<Self, (String, Option<u64>)> {
        let told = |error: Error| {
            let offset = match &error {
                Error::Io { offset, .. }
                | Error::Unexpected { offset, .. }
                | Error::Truncated { offset, .. }
                | Error::HeaderTooLong { offset, .. }
                | Error::Header { offset, .. } => Some(*offset),
                _ => None,
            };
            (error.to_string(), offset)
        };
        let snapshot = Snapshot::open(path, &ReadOptions::default()).map_err(told)?;
        let heap = Heap::with_summary(snapshot).map_err(told)?;
        Ok(Self { path: path.to_owned(), heap, summary: OnceLock::new() })
    }

    /// Its classes and statistics.
    pub(crate) fn summary(&self) -> &StoredSummary {
        self.summary.get_or_init(|| StoredSummary::of(&self.heap))
    }

    /// What is wrong with the file.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.heap.snapshot().problems().iter().map(ToString::to_string).collect()
    }

    /// What `/api/files` says of it.
    pub(crate) fn facts(&self) -> Value {
        let (snapshot, summary) = (self.heap.snapshot(), self.summary());
        json!({
            "node_count": summary.node_count,
            "edge_count": summary.edge_count,
            "total_bytes": summary.statistics.total_bytes,
            "exposes_internals": summary.exposes_internals,
            "root_id": snapshot.id(snapshot.root()),
            "problems": summary.problems,
        })
    }
}
