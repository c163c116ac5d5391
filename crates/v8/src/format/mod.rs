//! Reader and writer of the `.heapsnapshot` format.

mod allocation_trace;
mod archive;
mod archive_member;
mod call_function;
mod check;
mod dialect;
mod digits;
mod edge_columns;
mod edge_names;
mod graph_columns;
mod header;
mod input;
mod locations;
mod members;
mod meta;
mod node_columns;
mod own_slots;
mod problem;
mod reader;
mod row_text;
mod sampling_profile;
mod scanner;
mod section;
mod snapshot;
mod string_text;
mod strings;
mod whole_number;
pub(crate) mod writer;
mod zip_archive;

pub use allocation_trace::{AllocationTrace, TimeSample, TraceFunction, TraceNode};
pub use archive::{open_unpacked, open_unpacked_at};
pub use call_function::CallFunction;
pub use dialect::Dialect;
pub(crate) use dialect::Table;
pub use graph_columns::GraphColumns;
pub use header::{NODE_FIELDS, snapshot_header};
pub use locations::{Location, Locations};
pub use meta::Meta;
pub use problem::Problem;
pub use reader::ReadOptions;
pub use snapshot::Snapshot;
pub(crate) use string_text::{compare_utf16, utf16_length, utf16_units};
pub(crate) use strings::NOT_IN_FILE;
pub use strings::Strings;
pub use whole_number::whole_number;

pub(crate) use call_function::named;
pub(crate) use edge_columns::{KIND_BITS, edge_words};
pub(crate) use edge_names::EdgeNames;
pub(crate) use node_columns::NodeColumns;
pub(crate) use sampling_profile::{SamplingProfile, first_member};

#[cfg(test)]
mod tests;
