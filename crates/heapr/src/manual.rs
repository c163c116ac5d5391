//! `heapr man`: the manual's pages, made from the same description as `--help`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::output::OutputFile;

/// Arguments of `heapr man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArguments {
    /// The command, such as `snapshot take` [default: heapr itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
    /// Write the pages of all commands into this folder, one file each
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    into: Option<PathBuf>,
    /// All commands with their options on one page of Markdown
    #[arg(long, conflicts_with_all = ["command", "into"])]
    markdown: bool,
    /// Overwrite existing files
    #[arg(short = 'f', long, requires = "into")]
    force: bool,
}

/// Runs the command; `command` is the whole command line.
pub(crate) fn run(arguments: &ManArguments, mut command: clap::Command) -> anyhow::Result<ExitCode> {
    command = command.disable_help_subcommand(true);
    command.build();
    if let Some(folder) = &arguments.into {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        write_all(&command, "heapr", folder, arguments.force)?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.markdown {
        let mut text = String::from("# Commands\n");
        write_markdown(&mut command, "heapr", &mut text);
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut asked = &command;
    let mut name = "heapr".to_owned();
    for word in &arguments.command {
        asked = asked.find_subcommand(word).with_context(|| {
            let words: Vec<&str> = visible(asked).map(clap::Command::get_name).collect();
            if words.is_empty() {
                format!("{} has no command {word}", name.replace('-', " "))
            } else {
                format!("{} has no command {word}; it has {}", name.replace('-', " "), words.join(", "))
            }
        })?;
        name = format!("{name}-{}", asked.get_name());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(&page(asked, &name)?)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the help of a command and of all its subcommands.
fn write_markdown(command: &mut clap::Command, name: &str, text: &mut String) {
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    text.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", help.join("\n").trim_end()));
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
        let name = format!("{name} {}", below.get_name());
        write_markdown(below, &name, text);
    }
}

/// Writes the page of a command and those of all its subcommands.
fn write_all(command: &clap::Command, name: &str, folder: &Path, may_replace: bool) -> anyhow::Result<()> {
    let path = folder.join(format!("{name}.1"));
    let mut file = OutputFile::create(&path, may_replace)?;
    file.write_all(&page(command, name)?).with_context(|| format!("cannot write {}", path.display()))?;
    // Manual pages are read by all users of the machine.
    file.set_mode(0o644)?;
    file.keep()?;
    visible(command)
        .try_for_each(|below| write_all(below, &format!("{name}-{}", below.get_name()), folder, may_replace))
}

fn page(command: &clap::Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    let command = command.clone().display_name(name.to_owned());
    clap_mangen::Man::new(command).title(name.to_owned()).render(&mut text)?;
    Ok(text)
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}
