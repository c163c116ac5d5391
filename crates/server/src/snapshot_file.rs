//! An open V8 snapshot.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use heapr_v8::devtools::{Heap, NodeSet};
use heapr_v8::view::{ObjectOrder, SnapshotView};
use heapr_v8::{Error as V8Error, ReadOptions, Snapshot, StoredSummary};
use serde::{Deserialize, Serialize};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::host::{GraphQuestion, HeapError, Host};
use crate::native_column::NativeColumn;
use crate::result_cache::ResultCache;

/// Facts of a snapshot that are sent before any query.
#[derive(Debug, Serialize)]
pub(crate) struct SnapshotFacts {
    node_count: u32,
    edge_count: u32,
    total_bytes: u64,
    exposes_internals: bool,
    /// Runtime of another language, such as `CPython 3.11.2`; null for V8.
    runtime: Option<String>,
    /// Bytes of native memory; null for V8, and for a heap without such memory.
    native_bytes: Option<u64>,
    pub(crate) root_id: u64,
    problems: Vec<String>,
}

/// Largest number of characters of a name in a list.
pub(crate) const NAME_CHARS_MAX: usize = 200;
/// Number of classes whose first objects are cached.
pub(crate) const KEPT_CLASSES: usize = 256;

/// Kind of a filter, as in `heapr snapshot summary --filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FilterKind {
    DuplicatedStrings,
    DetachedNodes,
    Console,
    EventHandlers,
    Contexts,
    SharedContext,
    NoContext,
}

/// Filter of objects, as in `heapr snapshot summary --filter`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SummaryFilter {
    pub(crate) kind: Vec<FilterKind>,
    pub(crate) allocated_after: Option<usize>,
    pub(crate) allocated_before: Option<usize>,
    pub(crate) native_context: Option<String>,
}

/// Key of cached filter results: the filter, and the generations of the files that it names.
pub(crate) type FilterKey = (SummaryFilter, [Option<u32>; 2]);

/// The objects that pass a filter, and their classes.
#[derive(Debug)]
pub(crate) struct Passing {
    /// Objects that pass; `None`: all.
    pub(crate) nodes: Option<NodeSet>,
    pub(crate) summary: StoredSummary,
}

/// Classes, their order, and the direction: true from the start, false from the end.
pub(crate) type FirstKey = (Vec<u32>, ObjectOrder, bool);

/// The first objects of a class in an order.
#[derive(Debug)]
pub(crate) struct FirstObjects {
    pub(crate) nodes: Vec<u32>,
    pub(crate) total_count: u64,
}

/// An open V8 snapshot with its caches.
#[derive(Debug)]
pub(crate) struct SnapshotFile {
    pub(crate) path: PathBuf,
    /// Graph of a trace that the snapshot was made from.
    graph: Option<GraphQuestion>,
    native: OnceLock<Option<NativeColumn>>,
    pub(crate) view: SnapshotView,
    /// Whole heap, for analyses of the whole graph; loaded by the first one.
    heap: ResultCache<(), Arc<Heap>>,
    /// Results of the filters of the summary that were used last.
    pub(crate) passing: ResultCache<FilterKey, Passing>,
    pub(crate) first_objects: ResultCache<FirstKey, FirstObjects>,
    /// Orders in which the first objects of the large classes were prepared, or are in preparation.
    pub(crate) prepared: Mutex<Vec<(ObjectOrder, bool)>>,
}

impl From<V8Error> for HeapError {
    fn from(error: V8Error) -> Self {
        let (message, offset) = told(&error);
        Self { message, offset }
    }
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
    /// Opens a snapshot by its index, which is made if it is missing and the host wants one. An
    /// error has its offset, if known.
    pub(crate) fn open(path: &Path, host: &dyn Host) -> Result<Self, HeapError> {
        let read = || match host.is_other_heap(path) {
            true => host.read_other_heap(path),
            false => Ok(Snapshot::open(path, &ReadOptions::default())?),
        };
        let view = match host.snapshot_indexes(path) {
            Some(store) => store.view_or_read_by(path, read)?,
            None => SnapshotView::of_heap(Arc::new(Heap::with_summary(read()?)?)),
        };
        let view = match host.source_maps(path) {
            Some(maps) => view.with_source_maps(maps),
            None => view,
        };
        // Computed at once: every page asks for it first.
        view.summary()?;
        Ok(Self {
            path: path.to_owned(),
            graph: host.graph_of(path),
            native: OnceLock::new(),
            // Lists cut names after a number of characters of at most two units each.
            view: view.with_short_names(2 * NAME_CHARS_MAX + 2),
            heap: ResultCache::new(1),
            passing: ResultCache::new(4),
            first_objects: ResultCache::new(KEPT_CLASSES),
            prepared: Mutex::default(),
        })
    }

    /// Whether the snapshot's index contains the first objects of classes.
    pub(crate) fn has_index(&self) -> bool {
        self.view.objects().class_rows(0).is_some()
    }

    /// Error of reading the snapshot.
    pub(crate) fn error(&self, error: &V8Error) -> Error {
        let (message, offset) = told(error);
        Error::Unusable { path: self.path.display().to_string(), message, offset }
    }

    /// Graph of a trace that the snapshot was made from.
    pub(crate) fn graph(&self) -> Option<&GraphQuestion> {
        self.graph.as_ref()
    }

    /// Native memory below the objects; `None` for V8, and for a heap without such memory.
    pub(crate) fn native(&self) -> Option<&NativeColumn> {
        let is_managed = self.graph.is_none();
        let column = || is_managed.then(|| NativeColumn::of(self.view.objects())).flatten();
        self.native.get_or_init(column).as_ref()
    }

    /// Classes and statistics of the snapshot.
    pub(crate) fn summary(&self) -> Result<&StoredSummary> {
        self.view.summary().map_err(|error| self.error(&error))
    }

    /// The whole heap.
    pub(crate) fn heap(&self, cancel: &Cancel) -> Result<Arc<Heap>> {
        let heap = self.heap.get(&(), cancel, |_| self.view.heap().map_err(|error| self.error(&error)))?;
        Ok(Arc::clone(&heap))
    }

    /// Node with an id.
    pub(crate) fn node(&self, id: u64) -> Result<u32> {
        let node = self.view.node_of_id(id).map_err(|error| self.error(&error))?;
        node.ok_or_else(|| Error::NotFound { what: "object", name: format!("@{id}") })
    }

    /// Problems of the file.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.summary().map(|summary| summary.problems.clone()).unwrap_or_else(|error| vec![error.to_string()])
    }

    /// Facts for `/api/files`.
    pub(crate) fn facts(&self) -> Option<SnapshotFacts> {
        let summary = self.summary().ok()?;
        Some(SnapshotFacts {
            node_count: summary.node_count,
            edge_count: summary.edge_count,
            total_bytes: summary.statistics.total_bytes,
            exposes_internals: summary.exposes_internals,
            runtime: self.view.objects().meta().dialect.as_ref().map(|dialect| dialect.runtime.clone()),
            native_bytes: self.native().map(|native| native.total_bytes),
            root_id: self.view.objects().id(self.view.root()),
            problems: summary.problems.clone(),
        })
    }

    /// Builds `heapr snapshot WHAT FILE …`. `None` for classes of a native graph, which no
    /// command lists: the summary of a trace lists stacks. `None` for one graph of several, too:
    /// commands on objects choose no process.
    pub(crate) fn command(&self, what: &str, rest: &[&str]) -> Option<String> {
        let path = match &self.graph {
            Some(graph) if what == "summary" || graph.pid.is_some() => return None,
            Some(graph) => graph.trace.display().to_string(),
            None => self.path.display().to_string(),
        };
        let words: Vec<&str> = ["snapshot", what, &path].into_iter().chain(rest.iter().copied()).collect();
        Some(crate::command_line::command(&words))
    }
}
