//! Queries on traces: select the allocations to count, and sum, rank and compare them.
//!
//! The caller passes an open trace, a source of names and a [`Query`]; [`run`] returns a
//! [`Report`]. Queries without time, lifetime, size, thread or type need no events: the summary
//! that closes the file answers them. Other queries replay only the events that they need. Their
//! memory holds the live blocks and the stacks, however long the trace is.
//!
//! ```text
//!  trace ── summary or replay ──> rows (stack, process, heap: amounts)
//!                                   │ required frames, culling (by names)
//!  names ── symbol tree ────────────┤
//!                                   └─> groups ── sort, top ──> report
//! ```
//!
//! Invariants: no input or output, no clock, no threads; no knowledge of how a report is printed.
#![forbid(unsafe_code)]

mod aggregate;
mod allocator_frames;
mod answer;
mod call_tree;
mod choice;
mod chosen_stacks;
mod code_table;
mod collector;
mod cull_list;
mod culled_rows;
mod culling;
mod ended_processes;
mod error;
mod filter;
mod frame_pattern;
mod frames;
mod free_sites;
mod functions;
mod glob;
mod histogram;
mod integer_hash;
mod intervals;
pub mod json;
mod judged_frames;
mod language_rules;
mod live_rows;
mod loss_text;
mod metrics;
mod name_table;
mod own_code;
mod query;
mod recorded_span;
mod replay;
mod report;
mod row_table;
mod run;
mod same_builds;
mod since;
mod snapshot_series;
mod stack_fold;
mod stack_groups;
mod stack_source;
mod steady_growth;
mod suppressions;
mod symbol_forms;
mod symbol_source;
mod symbol_tree;
mod tree_order;
mod trend;

pub use call_tree::{CallNode, CallTree};
pub use cull_list::CullList;
pub use ended_processes::{process_ends, written_summary};
pub use error::{Error, Result};
pub use filter::{AllocationType, Filter, InnermostFrames, Moment, Span, ThreadChoice};
pub use frame_pattern::{FramePattern, file_name};
pub use frames::FrameView;
pub use free_sites::{FreeSite, FreeSites, Freed, free_sites};
pub use functions::{FunctionAmounts, Functions};
pub use histogram::{Bucket, Histogram, HistogramOf};
pub use intervals::{Interval, for_each_interval};
pub use live_rows::{LiveRow, LiveRows, live_rows};
pub use loss_text::{loss_warnings, notice_lines};
pub use metrics::{Metric, typescript};
pub use own_code::{NAMED_WITHIN, OwnCode, Owner};
pub use query::{Action, GroupBy, Query};
pub use recorded_span::RecordedSpan;
pub use replay::Progress;
pub use report::{Answer, Group, HeapRow, Ranking, Report, Section};
pub use run::{run, run_with_progress, summary_and_rows, whole_summary};
pub use same_builds::{SameBuilds, common_name, module_of_name};
pub use since::Since;
pub use snapshot_series::{
    Change, ChangeOrder, Confidence, Line, LineChange, LineOrder, LineStack, SUSPECT_COLUMNS,
    Series as SnapshotSeries, SeriesFile, Suspect, SuspectOrder, Taken, is_at_end, process_names,
};
pub use stack_fold::StackFold;
pub use stack_groups::StackGroups;
pub use steady_growth::{SteadyGrowth, course_in_words, ordered};
pub use suppressions::{FrameText, SuppressionError, Suppressions};
pub use symbol_forms::{folded, plain_symbol, script_place};
pub use symbol_source::{FrameSink, NoSymbols, PackageSource, SourceFrame, SymbolSource};
pub use trend::Trend;

/// The parts that answers consist of, for `heapr-explore`, which finds the same rows by another
/// method.
pub mod engine {
    pub use crate::choice::Choice;
    pub use crate::chosen_stacks::chosen_stacks;
    pub use crate::code_table::CodeTable;
    pub use crate::collector::{Collected, Oddities, RowSums};
    pub use crate::culled_rows::Culled;
    pub use crate::culling::Culling;
    pub use crate::frames::{FrameId, FrameTable};
    pub use crate::histogram::HistogramCounter;
    pub use crate::judged_frames::JudgedFrames;
    pub use crate::name_table::Name;
    pub use crate::replay::Replay;
    pub use crate::report::{GroupKey, frames_of_group};
    pub use crate::row_table::{RowKey, RowSource, RowTable, Rows};
    pub use crate::run::is_without_events;
    pub use crate::stack_source::StackSource;
    pub use crate::symbol_tree::{HeldTree, NamedStack, SymbolTree};
    pub use crate::tree_order::{depth_first, greatest};
}
