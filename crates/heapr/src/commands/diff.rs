//! `heapr diff`.

use std::process::ExitCode;

/// Arguments of `heapr diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArguments {}

/// Runs the command.
pub(crate) fn run(_arguments: DiffArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`heapr diff` is not built yet")
}
