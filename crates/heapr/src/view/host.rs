//! The server's requests to the command line: names and indexes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use heapr_filters::ShownFrames;
use heapr_query::{OwnCode, SymbolSource};
use heapr_server::{GraphHolders, GraphKind, GraphLeaks, GraphQuestion, HeapError, Host, IncidentTold};
use heapr_trace::{LanguageFrames, SnapshotTrigger, Trace};
use heapr_v8::{IndexStore, Snapshot, SourceMaps};

use super::sources::WrittenGraph;
use crate::incidents::incident_of_recording;
use crate::own_arguments::OwnArguments;
use crate::report::names::{NameArguments, TraceNames};
use crate::snapshot::managed::dump_file;
use crate::snapshot::native::{GraphArguments, graph_kinds, shown_holders, shown_leaks, why};
use crate::snapshot::v8::index_cache;
use crate::snapshot::v8::source_maps::maps_for;

/// Finds names and indexes for the server by the command line's arguments.
#[derive(Debug)]
pub(crate) struct CommandLineHost {
    pub(crate) names: NameArguments,
    pub(crate) own: OwnArguments,
    pub(crate) shown: ShownFrames,
    /// Temporary folder, removed when the page ends.
    pub(crate) folder: PathBuf,
    /// True while a static page is written: it asks for more than an index answers fast.
    pub(crate) is_static: bool,
    /// Graphs of the shown traces, written into the folder.
    pub(crate) graphs: Vec<WrittenGraph>,
}

impl CommandLineHost {
    fn graph(&self, asked: &GraphQuestion) -> GraphArguments {
        GraphArguments {
            snapshot: Some(asked.snapshot.to_string()),
            pid: asked.pid,
            names: self.names.clone(),
        }
    }
}

impl Host for CommandLineHost {
    fn names(&self, trace: &Trace) -> Box<dyn SymbolSource + Send> {
        Box::new(TraceNames::new(trace, &self.names))
    }

    fn own_code(&self, trace: &Trace) -> OwnCode {
        self.own.code(trace).unwrap_or_else(|error| {
            warn!("{error:#}");
            OwnCode::of_trace(trace)
        })
    }

    fn language_frames(&self) -> LanguageFrames {
        self.shown.into()
    }

    fn incident_of(&self, trace: &Path) -> Option<IncidentTold> {
        incident_of_recording(trace)
    }

    fn snapshot_indexes(&self, path: &Path) -> Option<IndexStore> {
        if self.is_static { None } else { index_cache::store_for(path) }
    }

    fn source_maps(&self, snapshot: &Path) -> Option<Arc<SourceMaps>> {
        maps_for(snapshot)
    }

    fn is_other_heap(&self, path: &Path) -> bool {
        dump_file::is_dump(path)
    }

    fn read_other_heap(&self, path: &Path) -> Result<Snapshot, HeapError> {
        let of_dump = |message: String, offset| HeapError { message, offset };
        match dump_file::read(path) {
            Some(read) => read.map_err(|error| of_dump(error.to_string(), error.offset())),
            None => Err(of_dump("it is no heap dump any more".to_owned(), Some(0))),
        }
    }

    fn graph_of(&self, snapshot: &Path) -> Option<GraphQuestion> {
        self.graphs.iter().find(|graph| graph.path == snapshot).map(|graph| graph.of.clone())
    }

    fn graph_holders(&self, asked: &GraphQuestion) -> Result<GraphHolders, String> {
        shown_holders(&asked.trace, &self.graph(asked)).map_err(|error| format!("{error:#}"))
    }

    fn graph_leaks(&self, asked: &GraphQuestion) -> Result<GraphLeaks, String> {
        shown_leaks(&asked.trace, &self.graph(asked)).map_err(|error| format!("{error:#}"))
    }

    fn graph_kinds(&self, graph: &GraphQuestion) -> Vec<GraphKind> {
        graph_kinds(&graph.trace, &self.graph(graph)).unwrap_or_else(|error| {
            warn!("{error:#}");
            Vec::new()
        })
    }

    fn drop_folder(&self) -> Option<PathBuf> {
        Some(self.folder.clone())
    }

    fn trigger(&self, trigger: SnapshotTrigger) -> String {
        why(trigger)
    }

    fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }
}
