//! Snapshots and profiles of running JavaScript: `heapr snapshot take` and `every`, and `heapr
//! node`.

mod capture;
mod every;
mod file_name;
mod hold;
pub(crate) mod interrupt;
pub(crate) mod javascript;
mod node;
mod node_prepare;
mod node_run;
mod node_sample;
mod node_timeline;
mod preflight;
mod ready_processes;
mod redaction;
mod saved_scripts;
mod signal_snapshot;
mod take;

pub(crate) use every::{EveryOptions, EveryQuestion, every};
pub(crate) use node::{NodeArguments, run as run_node};
pub(crate) use node_run::state_directory;
pub(crate) use take::{Format, TakeOptions, TakeQuestion, take};
