//! What the command line lends the server: where names come from and indexes are kept.

use std::sync::Arc;

use heapr_query::{OwnCode, SymbolSource};
use heapr_trace::{LanguageFrames, SnapshotTrigger, Trace};
use heapr_v8::{IndexStore, SourceMaps};

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

    /// Where files that are dropped on the page are kept; nothing: none are taken.
    fn drop_folder(&self) -> Option<std::path::PathBuf> {
        None
    }

    /// Why a native snapshot was taken, in words.
    fn trigger(&self, trigger: SnapshotTrigger) -> String;

    /// heapr's version.
    fn version(&self) -> &str;
}
