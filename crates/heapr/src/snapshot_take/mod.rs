//! `heapr snapshot take`, `heapr snapshot every`, `heapr node`: snapshots and profiles of running JavaScript.

mod by_signal;
mod capture;
mod every;
mod file_name;
mod hold;
mod interrupt;
mod node;
mod node_prepare;
mod node_run;
mod node_sample;
mod node_timeline;
mod output_file;
mod preflight;
mod prepared;
mod take;

use std::process::ExitCode;

pub(crate) use every::{EveryArguments, parse_interval};
pub(crate) use node::{NodeArguments, run as run_node};
pub(crate) use output_file::OutputFile;
pub(crate) use take::TakeArguments;

/// The commands of `heapr snapshot` that take some.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Take a heap snapshot of a running Node (Deno, Electron, Chrome) process, or of any other's native heap (--native).
    Take(Box<TakeArguments>),
    /// Take heap snapshots at intervals, or when the heap passes a size; --off, --native: of native heaps.
    Every(Box<EveryArguments>),
}

/// Runs the command.
pub(crate) fn run(command: SnapshotCommand) -> anyhow::Result<ExitCode> {
    match command {
        SnapshotCommand::Take(arguments) => take::run(*arguments),
        SnapshotCommand::Every(arguments) => every::run(*arguments),
    }
}
