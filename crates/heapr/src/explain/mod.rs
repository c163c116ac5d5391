//! `heapr explain`: why memory is as it is: findings in words, and what all resident memory is.

mod answer;
mod command;
pub(crate) mod finding_text;
mod findings;
mod for_ci;
mod markup;
mod resident;
mod target;
mod thresholds;
mod v8_snapshots;

pub(crate) use command::{ExplainArguments, run};
