//! What the command line lends the server: where names come from and indexes are kept.

use std::sync::Arc;

use heapr_query::{OwnCode, SymbolSource};
use heapr_trace::{LanguageFrames, SnapshotTrigger, Trace};
use heapr_v8::{IndexStore, SourceMaps};
use serde::Serialize;

/// Blocks of a native heap of which the same is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphKind {
    /// Its key in tables.
    pub kind: &'static str,
    /// In words.
    pub heading: &'static str,
    /// How many.
    pub count: u64,
    /// How large together.
    pub bytes: u64,
}

/// See the module.
pub trait Host: std::fmt::Debug + Send + Sync + 'static {
    /// Names for a trace.
    fn names(&self, trace: &Trace) -> Box<dyn SymbolSource + Send>;

    /// Which code is the own code of a trace's programs.
    fn own_code(&self, trace: &Trace) -> OwnCode {
        OwnCode::of_trace(trace)
    }

    /// Which frames of a trace's stacks are shown.
    fn language_frames(&self) -> LanguageFrames {
        LanguageFrames::Mixed
    }

    /// Where indexes of snapshots are kept, if a snapshot is to have one.
    fn snapshot_indexes(&self, path: &std::path::Path) -> Option<IndexStore>;

    /// The source maps of a snapshot's scripts, if places are to be named in the sources.
    fn source_maps(&self, snapshot: &std::path::Path) -> Option<Arc<SourceMaps>> {
        let _ = snapshot;
        None
    }

    /// The trace whose native heap a snapshot was made of, for the page alone: what the command
    /// line is asked is that.
    fn trace_of(&self, snapshot: &std::path::Path) -> Option<std::path::PathBuf> {
        let _ = snapshot;
        None
    }

    /// What fills the native heap of such a trace, by what is known of its blocks; nothing where
    /// that cannot be told any more.
    fn graph_kinds(&self, trace: &std::path::Path) -> Vec<GraphKind> {
        let _ = trace;
        Vec::new()
    }

    /// Where files that are dropped on the page are kept; nothing: none are taken.
    fn drop_folder(&self) -> Option<std::path::PathBuf> {
        None
    }

    /// Why a native snapshot was taken, in words.
    fn trigger(&self, trigger: SnapshotTrigger) -> String;

    /// heapr's version.
    fn version(&self) -> &str;
}
