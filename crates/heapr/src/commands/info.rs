//! `heapr info`.

use std::process::ExitCode;

/// Arguments of `heapr info`.
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArguments {}

/// Runs the command.
pub(crate) fn run(_arguments: InfoArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`heapr info` is not built yet")
}
