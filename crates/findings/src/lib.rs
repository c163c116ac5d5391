//! What stands out in a recording or in snapshots, in words: the one place where findings are made.
//!
//! Invariants: no input or output, no clock; a sentence is the same wherever it is shown; nothing is
//! found where nothing is wrong.
#![forbid(unsafe_code)]

mod finding;

pub use finding::{Finding, Kind, OwnFrame};
