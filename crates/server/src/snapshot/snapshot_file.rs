//! A snapshot that is open.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use heapr_v8::devtools::Heap;
use heapr_v8::view::{ObjectOrder, SnapshotView};
use heapr_v8::{Error as V8Error, ReadOptions, Snapshot, StoredSummary};
use serde_json::{Value, json};

use super::first_objects::{FirstKey, FirstObjects, KEPT_CLASSES};
use super::rows::NAME_CHARS_MAX;
use super::summary::{FilterKey, Passing};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::host::Host;
use crate::kept::Kept;

/// See the module.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) path: PathBuf,
    pub(crate) view: SnapshotView,
    /// The whole heap, for analyses of the whole graph: loaded when the first one asks.
    heap: Kept<(), Arc<Heap>>,
    /// What passes the filters of the summary that were used last.
    pub(super) passing: Kept<FilterKey, Passing>,
    pub(super) first_objects: Kept<FirstKey, FirstObjects>,
    /// Orders in which the first objects of the large classes are found, or were.
    pub(super) prepared: Mutex<Vec<(ObjectOrder, bool)>>,
}

fn told(error: &V8Error) -> (String, Option<u64>) {
    let offset = match error {
        V8Error::Io { offset, .. }
        | V8Error::Unexpected { offset, .. }
        | V8Error::Truncated { offset, .. }
        | V8Error::HeaderTooLong { offset, .. }
        | V8Error::Header { offset, .. } => Some(*offset),
        _ => None,
    };
    (error.to_string(), offset)
}

impl SnapshotFile {
    /// Opens it by its index, which is made if there is none and the host wants one; an error with its offset, where that is
    /// known.
    pub(crate) fn open(path: &Path, host: &dyn Host) -> Result<Self, (String, Option<u64>)> {
        let options = ReadOptions::default();
        let view = match host.snapshot_indexes(path) {
            Some(store) => store.view_or_read(path, &options),
            None => Snapshot::open(path, &options)
                .and_then(Heap::with_summary)
                .map(|heap| SnapshotView::of_heap(Arc::new(heap))),
        };
        let view = view.map_err(|error| told(&error))?;
        // What every page asks first.
        view.summary().map_err(|error| told(&error))?;
        Ok(Self {
            path: path.to_owned(),
            // Lists cut names after so many characters, each of two units at most.
            view: view.with_short_names(2 * NAME_CHARS_MAX + 2),
            heap: Kept::new(1),
            passing: Kept::new(4),
            first_objects: Kept::new(KEPT_CLASSES),
            prepared: Mutex::default(),
        })
    }

    /// Whether the first objects of classes stand in an index.
    pub(super) fn has_index(&self) -> bool {
        self.view.objects().class_rows(0).is_some()
    }

    /// An error of the snapshot's own.
    pub(crate) fn error(&self, error: &V8Error) -> Error {
        let (message, offset) = told(error);
        Error::Unusable { path: self.path.display().to_string(), message, offset }
    }

    /// Its classes and statistics.
    pub(crate) fn summary(&self) -> Result<&StoredSummary> {
        self.view.summary().map_err(|error| self.error(&error))
    }

    /// The whole heap.
    pub(crate) fn heap(&self, cancel: &Cancel) -> Result<Arc<Heap>> {
        let heap = self.heap.get(&(), cancel, |_| self.view.heap().map_err(|error| self.error(&error)))?;
        Ok(Arc::clone(&heap))
    }

    /// The node of an id.
    pub(crate) fn node(&self, id: u64) -> Result<u32> {
        let node = self.view.node_of_id(id).map_err(|error| self.error(&error))?;
        node.ok_or_else(|| Error::NotFound { what: "object", name: format!("@{id}") })
    }

    /// What is wrong with the file.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.summary().map(|summary| summary.problems.clone()).unwrap_or_else(|error| vec![error.to_string()])
    }

    /// What `/api/files` says of it.
    pub(crate) fn facts(&self) -> Value {
        let Ok(summary) = self.summary() else { return Value::Null };
        json!({
            "node_count": summary.node_count,
            "edge_count": summary.edge_count,
            "total_bytes": summary.statistics.total_bytes,
            "exposes_internals": summary.exposes_internals,
            "root_id": self.view.objects().id(self.view.root()),
            "problems": summary.problems,
        })
    }

    /// `heapr snapshot WHAT FILE …`.
    pub(crate) fn command(&self, what: &str, rest: &[&str]) -> String {
        let path = self.path.display().to_string();
        let words: Vec<&str> = ["snapshot", what, &path].into_iter().chain(rest.iter().copied()).collect();
        crate::command_line::command(&words)
    }
}
