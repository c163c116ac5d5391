//! Exports, read by other tools: sums are equal everywhere.
#![forbid(unsafe_code)]

mod folded_stacks;
mod languages;
mod made_trace;
mod python;
mod round_trip;
mod tables;
