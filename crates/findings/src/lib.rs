//! Findings: sentences about what stands out in a recording or in snapshots. All findings are made
//! here.
//!
//! ```text
//! trace ── summary, course, names ──> sites (own function: amounts, what it held by moment)
//!                                       │ growth, peak, churn, idle …, each a judge of its own
//! snapshots of V8 ── suspects ──────────┤
//!                                       └─> findings, the weightiest first
//! ```
//!
//! Invariants: this crate uses no input or output and no clock. A sentence is the same wherever it
//! is shown. A recording without faults has no findings.
#![forbid(unsafe_code)]

mod all_growth;
mod allocator_advice;
mod calls;
mod churn;
mod collections;
mod doubling;
mod estimated;
mod finding;
mod found;
mod growth;
mod held;
mod judged;
mod kept_memory;
mod lost_blocks;
#[cfg(test)]
mod made;
mod mapped_files;
#[cfg(test)]
mod near_misses;
mod own_frames;
mod own_name;
mod peak;
mod python_objects;
mod recording;
mod rests;
mod seen;
mod site;
mod sites;
mod sliced_sums;
mod slices;
mod stays;
mod threads;
mod through;
mod together;
mod unread;
mod v8_snapshots;
mod wanted_stacks;
mod where_it_is;
mod whole_course;
mod whole_growth;
mod work_time;

pub use finding::{Chosen, Finding, Kind, OwnFrame, quoted};
pub use found::{Found, of_named_recording, of_recording, of_reported_recording};
pub use judged::Judged;
pub use v8_snapshots::of_v8_snapshots;
pub use where_it_is::{LiveBlocks, Piece, PieceKind, WhereItIs, where_it_is};
