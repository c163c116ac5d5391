//! Services that the command line provides to the server: names of functions, folders for indexes.

use std::sync::Arc;

use heapr_query::{OwnCode, SymbolSource};
use heapr_trace::{LanguageFrames, SnapshotTrigger, Trace};
use heapr_v8::{IndexStore, Snapshot, SourceMaps};
use serde::Serialize;

/// Error of reading a heap from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapError {
    /// Message in words.
    pub message: String,
    /// Offset in the unpacked file, in bytes, if known.
    pub offset: Option<u64>,
}

/// Blocks of a native heap about which the same facts are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphKind {
    /// Key in tables.
    pub kind: &'static str,
    /// Heading in words.
    pub heading: &'static str,
    /// Number of blocks.
    pub count: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
}

/// Services of the command line.
pub trait Host: std::fmt::Debug + Send + Sync + 'static {
    /// Source of names for a trace.
    fn names(&self, trace: &Trace) -> Box<dyn SymbolSource + Send>;

    /// Recognition of user code in a trace's programs.
    fn own_code(&self, trace: &Trace) -> OwnCode {
        OwnCode::of_trace(trace)
    }

    /// Default for the language frames that are shown.
    fn language_frames(&self) -> LanguageFrames {
        LanguageFrames::Mixed
    }

    /// Store of a snapshot's index, if the snapshot should have one.
    fn snapshot_indexes(&self, path: &std::path::Path) -> Option<IndexStore>;

    /// Source maps of a snapshot's scripts, to name locations in the sources.
    fn source_maps(&self, snapshot: &std::path::Path) -> Option<Arc<SourceMaps>> {
        let _ = snapshot;
        None
    }

    /// Whether a file is a heap in another format than V8's, which [`Self::read_other_heap`] reads.
    fn is_other_heap(&self, path: &std::path::Path) -> bool {
        let _ = path;
        false
    }

    /// Reads a heap in another format than V8's, such as a heap dump of Java.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn read_other_heap(&self, path: &std::path::Path) -> Result<Snapshot, HeapError> {
        let _ = path;
        Err(HeapError { message: "its format is unknown".to_owned(), offset: None })
    }

    /// Trace that a page's snapshot was made from. The command line works on the trace in its
    /// place.
    fn trace_of(&self, snapshot: &std::path::Path) -> Option<std::path::PathBuf> {
        let _ = snapshot;
        None
    }

    /// Kinds of blocks in the native heap of such a trace; empty if it cannot be determined any
    /// more.
    fn graph_kinds(&self, trace: &std::path::Path) -> Vec<GraphKind> {
        let _ = trace;
        Vec::new()
    }

    /// Folder for files that are dropped on the page; `None`: they are refused.
    fn drop_folder(&self) -> Option<std::path::PathBuf> {
        None
    }

    /// Reason of a native snapshot in words.
    fn trigger(&self, trigger: SnapshotTrigger) -> String;

    /// Version of heapr.
    fn version(&self) -> &str;
}
