//! `heapr man`: the manual's pages, made from the same description as `--help`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use crate::help;
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

/// Returns the page of a command, whose name has its words with `-` between them.
fn page(command: &clap::Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let path = name.strip_prefix("heapr").unwrap_or_default().trim_start_matches('-');
    let path = words_of(command, path);
    let mut text = Vec::new();
    let shown = command.clone().display_name(name.to_owned());
    let source = format!("heapr {}", crate::version::short());
    let page = clap_mangen::Man::new(shown).title(name.to_uppercase()).source(source).manual("heapr");
    page.render_title(&mut text)?;
    page.render_name_section(&mut text)?;
    page.render_synopsis_section(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if visible(command).next().is_some() {
        page.render_subcommands_section(&mut text)?;
    }
    let mut text = without_repetition(&String::from_utf8_lossy(&text));
    let mut sections = String::from(".SH EXAMPLES\n");
    for example in help::examples_of(&path) {
        sections += &item(example.line, example.meaning);
    }
    for (title, facts) in [
        ("EXIT STATUS", help::exit_status(&path).collect::<Vec<_>>()),
        ("FILES", help::files(&path).collect()),
        ("ENVIRONMENT", help::environment(&path).collect()),
    ] {
        if !facts.is_empty() {
            sections += &format!(".SH \"{title}\"\n");
        }
        for fact in facts {
            sections += &item(fact.name, fact.meaning);
        }
    }
    sections += &format!(".SH VERSION\n{}\n", escaped(&format!("heapr {}", crate::version::short())));
    text.push_str(&sections);
    Ok(text.into_bytes())
}

/// Removes the definitions of quotes that each rendered section begins with, but for the first
/// ones.
fn without_repetition(text: &str) -> String {
    let is_definition = |line: &&str| line.contains(".ds Aq ");
    let definitions: Vec<&str> = text.lines().take_while(is_definition).collect();
    let rest = text.lines().filter(|line| !definitions.contains(line));
    definitions.iter().copied().chain(rest).map(|line| format!("{line}\n")).collect()
}

/// Returns the words of a command: those of its name, without `heapr`.
fn words_of(command: &clap::Command, path: &str) -> String {
    // Names of commands may have a `-` of their own: `snapshot-native-contexts`.
    match path.strip_suffix(command.get_name()).map(|above| above.trim_end_matches('-')) {
        Some("") | None => path.to_owned(),
        Some(above) => format!("{above} {}", command.get_name()),
    }
}

/// Returns an item of a section: its name in bold, and its text.
fn item(name: &str, text: &str) -> String {
    format!(".TP\n\\fB{}\\fR\n{}\n", escaped(name), escaped(text))
}

/// Returns text in which troff sees no commands.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    if text.starts_with('.') { format!("\\&{text}") } else { text }
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
}
