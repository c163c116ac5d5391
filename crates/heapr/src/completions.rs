//! `heapr completions`: scripts by which a shell completes heapr's commands and options.

use std::io::Write as _;
use std::process::ExitCode;

use clap_complete::Shell;

/// Arguments of `heapr completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command; `command` is the whole command line.
pub(crate) fn run(arguments: &CompletionsArguments, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    // Generated in memory, because clap_complete panics on a closed pipe.
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "heapr", &mut text);
    let mut out = std::io::stdout().lock();
    out.write_all(&text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
