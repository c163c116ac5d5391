//! `heapr mark`: puts a text into a session's trace.

use std::process::ExitCode;

use heapr_session::{Request, sessions};

/// Largest number of characters of a marker.
const TEXT_CHARACTERS_MAX: usize = 4096;

/// Arguments of `heapr mark`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "heapr mark [NAME] TEXT")]
pub(crate) struct MarkArguments {
    /// The session, if several run, and the text
    #[arg(required = true, num_args = 1..=2, value_name = "WORDS")]
    words: Vec<String>,
}

pub(super) fn run(arguments: &MarkArguments) -> anyhow::Result<ExitCode> {
    let (name, text) = match arguments.words.as_slice() {
        [name, text] => (Some(name.as_str()), text),
        [text] => (None, text),
        _ => anyhow::bail!("`heapr mark [NAME] TEXT` takes one text"),
    };
    anyhow::ensure!(
        text.chars().count() <= TEXT_CHARACTERS_MAX,
        "a marker of {} characters: at most {TEXT_CHARACTERS_MAX} are possible",
        text.chars().count()
    );
    anyhow::ensure!(!text.trim().is_empty(), "a marker without a text: heapr mark [NAME] TEXT");
    anyhow::ensure!(
        name.is_some() || sessions().iter().all(|entry| entry.name != *text),
        "{text} is a session's name: give the text too, heapr mark {text} TEXT"
    );
    super::find(name)?.ask(Request::Mark(text.clone()))?;
    Ok(ExitCode::SUCCESS)
}
