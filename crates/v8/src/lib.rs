//! V8 heap snapshots: the file format, Chrome DevTools' view of them, and analyses.
#![forbid(unsafe_code)]

pub mod analysis;
mod cache_folder;
mod call_tree;
mod data_keys;
pub mod devtools;
mod error;
mod fingerprint;
mod format;
pub mod graph_rows;
mod graph_text;
mod index;
mod kinds;
mod languages;
mod node_set;
mod objects;
mod profile_comparison;
mod rewrite;
mod saved_scripts;
mod script_text;
mod source_maps;
mod stored_summary;
pub mod view;

pub use call_tree::{Allocations, CallNode, CallTree, FunctionAllocations};
pub use error::{Error, Result};
pub use fingerprint::Fingerprint;
pub use format::{
    AllocationTrace, CallFunction, Dialect, GraphColumns, Location, Locations, Meta, NODE_FIELDS, Problem,
    ReadOptions, Snapshot, Strings, TimeSample, TraceFunction, TraceNode, open_unpacked, open_unpacked_at,
    snapshot_header, whole_number,
};
pub(crate) use format::{utf16_length, utf16_units};
pub use graph_text::GraphForm;
pub use index::{IndexStore, StoredGraph};
pub use kinds::{DomState, EDGE_KINDS, EdgeKind, NODE_KINDS, NodeKind};
pub use profile_comparison::{FunctionGrowth, compare_profiles};
pub use rewrite::Secrecy;
pub use saved_scripts::SavedScript;
pub use source_maps::{Original, SourceMaps, Unused, map_file};
pub use stored_summary::{StoredClass, StoredSummary, SummaryStore};
