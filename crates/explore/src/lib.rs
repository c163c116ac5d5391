//! Many queries on one trace: their common parts are computed once and cached.
//!
//! ```text
//!  events ── one replay ──> event table (allocations and their ends, in columns)
//!                              │ a scan for each filter: milliseconds for a million events
//!  file's summary ─────────────┤
//!                              └─> selection (rows) ── rankings, flame graphs, histograms
//!  names, once ── symbol tree ─────────┘
//! ```
//! All numbers equal those of [`heapr_query::run`]; `tests/it/explored.rs` compares them on random
//! traces with random filters.
//!
//! Invariants: no input or output, no clock, no threads beyond those that the caller allows
//! ([`Parallelism`]).
#![forbid(unsafe_code)]

mod allocation_set;
mod allocation_walk;
mod bit_sums;
mod cached_sums;
mod compared_functions;
mod difference;
mod difference_frames;
mod event_table;
mod example_blocks;
mod explored_frames;
mod explorer;
mod flame;
mod frame_number;
mod frame_tree;
mod group_lines;
mod inverted_flame;
mod landmarks;
mod last_ends;
mod lasting_blocks;
mod lazy_value;
mod leaks;
mod lifetime_column;
mod live_then;
mod move_batch;
mod move_columns;
mod neighbours;
mod parallelism;
mod peak;
mod range_sums;
mod read_ahead;
mod recent_results;
mod row_plan;
mod scan;
mod scan_inputs;
mod selection;
mod site_sums;
mod site_table;
mod size_column;
mod span_sums;
mod table_builder;
mod time_column;
mod timeline;
mod timeline_pass;
mod timeline_query;

pub use compared_functions::{Build, ComparedFunction, compare_functions};
pub use difference::{DifferenceGroup, DifferenceNode, DifferenceTree, FrameUnion, Side};
pub use difference_frames::DifferenceFrames;
pub use event_table::{EventTable, TableLimit};
pub use example_blocks::ExampleBlock;
pub use explorer::{Explorer, Found};
pub use flame::{FlameNode, FlameQuery, FlameTree};
pub use frame_number::FrameNumber;
pub use lasting_blocks::LastingBlock;
pub use leaks::{Age, Growth};
pub use live_then::LiveThen;
pub use neighbours::Neighbours;
pub use parallelism::Parallelism;
pub use selection::Selection;
pub use span_sums::{SpanSum, SpanSums};
pub use table_builder::GrowingTable;
pub use timeline::{Series, SeriesKey, Timeline, TimelineBy, TimelineOf, TimelineQuery, TimelineVariances};
