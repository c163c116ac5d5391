//! What the command line lends the server: how filters are written, where names come from, how files are exported.

use heapr_query::{CullList, Filter, SymbolSource};
use heapr_trace::{SnapshotTrigger, Trace};
use heapr_v8::IndexStore;

/// A file for another program.
#[derive(Debug, Clone)]
pub struct ExportRequest<'a> {
    /// The trace's path.
    pub path: &'a std::path::Path,
    /// `collapsed`, `pprof`, `speedscope`, `flamegraph`, `csv` or `json`.
    pub to: &'a str,
    /// Sort key or value.
    pub value: &'a str,
    /// `stacks`, `frames`, `images`, `by-thread`: of `csv` and `json`.
    pub by: &'a str,
    /// The filter in the words of the command line.
    pub filter_words: &'a [String],
}

/// See the module. Errors are texts for the user.
pub trait Host: Send + Sync + 'static {
    /// The filter that words of the command line say of a trace (its start, for wall-clock times; its snapshots).
    ///
    /// # Errors
    /// They can't be read.
    fn filter(&self, words: &[String], trace: &Trace) -> Result<(Filter, CullList), String>;

    /// Names for a trace.
    fn names(&self, trace: &Trace) -> Box<dyn SymbolSource + Send>;

    /// The bytes of an exported file.
    ///
    /// # Errors
    /// It cannot be made.
    fn export(&self, request: &ExportRequest<'_>) -> Result<Vec<u8>, String>;

    /// Where indexes of snapshots are kept, if a snapshot is to have one.
    fn snapshot_indexes(&self, path: &std::path::Path) -> Option<IndexStore>;

    /// Why a native snapshot was taken, in words.
    fn trigger(&self, trigger: SnapshotTrigger) -> String;

    /// heapr's version.
    fn version(&self) -> &str;
}
