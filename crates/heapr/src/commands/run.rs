//! `heapr run`.

use std::process::ExitCode;

/// Arguments of `heapr run`.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {}

/// Runs the command.
pub(crate) fn run(_arguments: RunArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`heapr run` is not built yet")
}
