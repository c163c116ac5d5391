//! What many queries on one trace give, against [`heapr_query::run`].

mod explored;
#[path = "../../../query/tests/it/made_trace.rs"]
mod made_trace;
#[path = "../../../query/tests/it/random_steps.rs"]
mod random_steps;
