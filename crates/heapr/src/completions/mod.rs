//! Completion in a shell: `heapr completions` prints a shell's script, and that asks heapr itself
//! at each press of the key, by [`COMMAND`].
//!
//! ```text
//! heapr complete-for-shell SHELL WORD…        the last word is the one that is completed
//! KIND                                         first line of the answer
//! CANDIDATE<TAB>DESCRIPTION                    one line each
//! ```

mod candidates;
mod traces;
mod values;
mod words;

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap_complete::Shell;

/// Name of the internal command, which is no part of the command line that users see.
pub(crate) const COMMAND: &str = "complete-for-shell";

/// Arguments of `heapr completions`.
#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command; `command` is the whole command line.
pub(crate) fn run(arguments: &CompletionsArguments, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let text = match arguments.shell {
        Shell::Bash => include_bytes!("heapr.bash").to_vec(),
        Shell::Zsh => include_bytes!("heapr.zsh").to_vec(),
        Shell::Fish => include_bytes!("heapr.fish").to_vec(),
        shell => {
            // Generated in memory, because clap_complete panics on a closed pipe.
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut command, "heapr", &mut text);
            text
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(&text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Answers a shell: `words` are those behind [`COMMAND`].
pub(crate) fn answer(words: &[OsString], mut command: clap::Command) -> anyhow::Result<ExitCode> {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some((shell, words)) = words.split_first() else { anyhow::bail!("a shell starts this command") };
    command.build();
    let splits_at_equals = shell == "bash";
    let found = words::completion(&command, words, splits_at_equals);
    let mut out = std::io::stdout().lock();
    out.write_all(found.text().as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
