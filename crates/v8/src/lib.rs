//! V8 heap snapshots: the format, what Chrome DevTools makes of it, and what a programmer asks of
//! it.
#![forbid(unsafe_code)]

pub mod analysis;
mod call_tree;
mod data_keys;
pub mod devtools;
mod error;
mod format;
mod index;
mod kinds;
mod rewrite;
mod snapshot;
mod stored_summary;
pub mod view;

pub use call_tree::{Allocations, CallFunction, CallNode, CallTree, FunctionAllocations};
pub use error::{Error, Result};
pub use format::{
    AllocationTrace, Location, Locations, Meta, Problem, ReadOptions, Strings, TimeSample, TraceFunction,
    TraceNode, compare_utf16, utf16_length, utf16_prefix, utf16_units,
};
pub use index::{Fingerprint, IndexStore, StoredGraph};
pub use kinds::{DomState, EdgeKind, NodeKind};
pub use rewrite::Secrecy;
pub use snapshot::Snapshot;
pub use stored_summary::{StoredClass, StoredSummary, SummaryStore};
