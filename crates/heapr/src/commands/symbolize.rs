//! `heapr symbolize`.

use std::process::ExitCode;

/// Arguments of `heapr symbolize`.
#[derive(Debug, clap::Args)]
pub(crate) struct SymbolizeArguments {}

/// Runs the command.
pub(crate) fn run(_arguments: SymbolizeArguments) -> anyhow::Result<ExitCode> {
    anyhow::bail!("`heapr symbolize` is not built yet")
}
