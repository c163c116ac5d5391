//! `heapr snapshot take`, `heapr snapshot every`, `heapr node`: snapshots and profiles of running JavaScript.

mod capture;
mod file_name;
mod interrupt;
mod output_file;
mod preflight;
mod take;

use std::process::ExitCode;

pub(crate) use take::TakeArguments;

/// The commands of `heapr snapshot` that take some.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Take a heap snapshot of a running Node (Deno, Electron, Chrome) process.
    Take(Box<TakeArguments>),
}

/// Runs the command.
pub(crate) fn run(command: SnapshotCommand) -> anyhow::Result<ExitCode> {
    match command {
        SnapshotCommand::Take(arguments) => take::run(*arguments),
    }
}
