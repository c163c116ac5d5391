//! `heapr report`.

use std::process::ExitCode;

/// Arguments of `heapr report`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArguments {}

/// Runs the command.
pub(crate) fn run(_arguments: ReportArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`heapr report` is not built yet")
}
