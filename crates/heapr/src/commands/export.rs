//! `heapr export`.

use std::process::ExitCode;

/// Arguments of `heapr export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArguments {}

/// Runs the command.
pub(crate) fn run(_arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`heapr export` is not built yet")
}
