//! Compares the answers to many queries on one trace with [`heapr_query::run`].

mod explored;
mod intervals;
#[path = "../../../query/tests/it/made_trace.rs"]
mod made_trace;
#[path = "../../../query/tests/it/random_steps.rs"]
mod random_steps;
mod sums;
