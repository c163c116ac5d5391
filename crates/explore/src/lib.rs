//! Many queries on one trace: what they have in common is made once and kept.
//!
//! ```text
//!  events ── one replay ──> event table (allocations and their ends, in columns)
//!                              │ a scan for each filter: milliseconds for a million events
//!  file's summary ─────────────┤
//!                              └─> selection (rows) ── rankings, flame graphs, histograms
//!  names, once ── symbol tree ─────────┘
//! ```
//! All numbers are those of [`heapr_query::run`]; `tests/it/explored.rs` compares them on random
//! traces with random filters.
//!
//! Invariants: no input or output, no clock, no threads but those that a caller lends ([`Spread`]).
#![forbid(unsafe_code)]

mod bit_sums;
mod counted;
mod course;
mod course_pen;
mod course_query;
mod difference;
mod event_table;
mod explorer;
mod flame;
mod frame_number;
mod gathered;
mod inverted_flame;
mod kept_sums;
mod landmarks;
mod last_ends;
mod leaks;
mod lifetime_column;
mod move_columns;
mod neighbours;
mod once;
mod passing;
mod peak;
mod prepared;
mod range_sums;
mod read_ahead;
mod remembered;
mod row_plan;
mod scan;
mod selection;
mod site_sums;
mod site_table;
mod spread;
mod table_builder;
mod time_column;

pub use course::{Course, CourseBy, CourseOf, CourseQuery, Series, SeriesKey};
pub use difference::{DifferenceGroup, DifferenceNode, DifferenceTree, FrameUnion, Side};
pub use event_table::{EventTable, TableLimit};
pub use explorer::{Explorer, Found};
pub use flame::{FlameNode, FlameQuery, FlameTree};
pub use frame_number::FrameNumber;
pub use leaks::Age;
pub use neighbours::Neighbours;
pub use selection::Selection;
pub use spread::Spread;
pub use table_builder::GrowingTable;
