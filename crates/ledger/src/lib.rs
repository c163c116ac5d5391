//! Replay of events into live blocks, lifetimes and peaks.
//!
//! The recorder replays events as they arrive, and a query those of a file; both use the same
//! [`Ledger`]. An [`Observer`] processes the births and deaths of blocks: [`SummaryBuilder`] builds
//! the summary that closes a file.
#![forbid(unsafe_code)]

mod block_record;
mod block_table;
mod course;
mod course_rest;
mod cut;
mod family;
mod group;
mod heap_totals;
mod ledger;
mod process_ends;
mod recent_groups;
mod runs;
mod short_lives;
mod stack_state;
mod summary_builder;
mod variance_sums;

pub use course::CourseTaker;
pub use ledger::{Cause, Death, Ledger, Observer};
pub use process_ends::ProcessEnds;
pub use summary_builder::SummaryBuilder;
