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

/// Graph of a native heap: the references between the blocks of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphQuestion {
    /// Trace that has the graph.
    pub trace: std::path::PathBuf,
    /// Number of the snapshot.
    pub snapshot: u32,
    /// Process, if the snapshot has graphs of several.
    pub pid: Option<u32>,
}

/// Amount that a variable, a stack frame or a mapping holds alone, or several together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphHolder {
    /// Name, the same in each graph of a process.
    pub name: String,
    /// Bytes of the blocks that would be freed with it.
    pub retained_bytes: u64,
    /// Number of these blocks.
    pub retained_count: u64,
    /// Growth since the first graph of the file; `None` if there is no other one.
    pub growth_bytes: Option<i64>,
}

/// Holders of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphHolders {
    /// Holders that hold something, the largest first.
    pub holders: Vec<GraphHolder>,
    /// Bytes of all blocks.
    pub block_bytes: u64,
    /// Bytes held by one alone, and by several together.
    pub held_bytes: [u64; 2],
    /// Number of the snapshot since which growth is counted.
    pub since: Option<u32>,
}

/// Leaked blocks of one kind, stack and type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphLeak {
    /// `definite`, `possible` or `indirect`.
    pub kind: &'static str,
    /// One of the stacks that allocated them.
    pub stack: heapr_trace::StackIndex,
    /// Number of blocks.
    pub count: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Bytes with those that only they hold.
    pub retained_bytes: u64,
    /// Number of circles among them.
    pub circle_count: u64,
    /// Age of the youngest block.
    pub youngest_ns: u64,
    /// Age of the oldest block.
    pub oldest_ns: u64,
    /// Type, with the evidence for it.
    pub type_name: Option<(String, &'static str)>,
}

/// Leaks of a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphLeaks {
    /// Leaks of all kinds, the definite ones first, in each kind the largest first.
    pub leaks: Vec<GraphLeak>,
    /// Bytes of all blocks.
    pub block_bytes: u64,
    /// Why blocks called possibly leaked may be in use.
    pub doubt: Option<String>,
    /// Parts of the memory that were not seen.
    pub notes: Vec<String>,
}

/// Incident that a recording was kept for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncidentTold {
    /// Number in its folder.
    pub number: u32,
    /// Time of the death or of the warning, ns since 1970.
    pub time_unix_ns: u64,
    /// Report in sentences, the first one first.
    pub sentences: Vec<String>,
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

    /// Incident that a trace is the recording of.
    fn incident_of(&self, trace: &std::path::Path) -> Option<IncidentTold> {
        let _ = trace;
        None
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

    /// Graph that a page's snapshot was made from. The command line works on its trace in the
    /// snapshot's place.
    fn graph_of(&self, snapshot: &std::path::Path) -> Option<GraphQuestion> {
        let _ = snapshot;
        None
    }

    /// Kinds of blocks in such a graph; empty if it cannot be determined any more.
    fn graph_kinds(&self, graph: &GraphQuestion) -> Vec<GraphKind> {
        let _ = graph;
        Vec::new()
    }

    /// Holders of a native graph.
    ///
    /// # Errors
    /// Why the graph cannot be read.
    fn graph_holders(&self, asked: &GraphQuestion) -> Result<GraphHolders, String> {
        let _ = asked;
        Err("native graphs cannot be read here".to_owned())
    }

    /// Leaks of a native graph.
    ///
    /// # Errors
    /// Why the graph cannot be read.
    fn graph_leaks(&self, asked: &GraphQuestion) -> Result<GraphLeaks, String> {
        let _ = asked;
        Err("native graphs cannot be read here".to_owned())
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
