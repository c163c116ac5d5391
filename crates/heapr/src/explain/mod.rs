//! `heapr explain`: why memory is as it is: findings in words, and what all resident memory is.

mod answer;
mod command;
mod findings;
mod resident;
mod target;

pub(crate) use command::{ExplainArguments, run};
