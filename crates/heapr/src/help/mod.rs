//! Help of all commands: their sections, which options `-h` leaves out, and what stands below the
//! options: examples, exit status, files, environment.
//!
//! | text | made from |
//! |---|---|
//! | `-h`, `--help` | the command's description, [`shaped`] |
//! | manual page | the same, and [`facts`] |

mod brief;
mod examples;
mod facts;
mod sections;
#[cfg(test)]
mod tests;

use clap::{Arg, ArgAction, Command};

pub(crate) use examples::Example;
pub(crate) use facts::{environment, exit_status, files};

/// Largest number of options with which `-h` shows all of them.
const OPTIONS_SHOWN_MAX: usize = 10;
/// Columns of a terminal for which short texts are made.
const COLUMNS: usize = 80;
/// Rank of options that stand last in their section.
const LAST: usize = 500;

/// Gives a command and all its subcommands the form in which help shows them.
pub(crate) fn shaped(command: Command) -> Command {
    with_path(command, "")
}

/// Returns the examples of a command, by its words without `heapr`.
pub(crate) fn examples_of(path: &str) -> Vec<Example> {
    examples::of(path)
}

fn with_path(mut command: Command, path: &str) -> Command {
    let name_length = command.get_subcommands().map(|below| below.get_name().len()).max().unwrap_or(0);
    let about_length = COLUMNS.saturating_sub(name_length + 4);
    let is_root = path.is_empty();
    let is_long = options(&command).count() > OPTIONS_SHOWN_MAX;
    let has_verbs = command.has_subcommands();
    command = command.mut_args(|argument| {
        let is_rare = is_long || has_verbs && argument.is_global_set();
        shaped_argument(argument, is_rare)
    });
    command = command.mut_subcommands(|below| {
        let below_path = format!("{path} {}", below.get_name());
        let below = with_path(below, below_path.trim());
        let Some(about) = below.get_about().map(ToString::to_string) else { return below };
        let short = brief::sentence(&about, about_length);
        if short == about { below } else { below.long_about(about.clone()).about(short.to_owned()) }
    });
    let version = Arg::new("version").short('V').long("version").action(ArgAction::Version);
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help);
    command
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(
            help.help("Print help; --help tells all")
                .long_help("Print help; -h tells the most used of it")
                .help_heading("Help")
                .display_order(LAST),
        )
        .arg(
            version
                .help("Print the version")
                .hide_short_help(!is_root)
                .help_heading("Help")
                .display_order(LAST + 1),
        )
        .after_long_help(below_options(path))
}

/// Returns the options of a command that help shows, with and without values.
pub(crate) fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|argument| !argument.is_positional() && !argument.is_hide_set())
}

fn shaped_argument(mut argument: Arg, may_be_left_out: bool) -> Arg {
    if argument.is_positional() {
        return with_short_help(argument.help_heading(None::<&'static str>));
    }
    let name = argument.get_long().unwrap_or_default().to_owned();
    if let Some(heading) = sections::of(&name, argument.get_help_heading()) {
        argument = argument.help_heading(heading);
    }
    if sections::is_last(&name) {
        argument = argument.display_order(LAST);
    }
    if may_be_left_out && sections::is_rare(&name) {
        return argument.hide_short_help(true);
    }
    with_short_help(argument)
}

/// Gives `-h` the short form of a help text.
fn with_short_help(argument: Arg) -> Arg {
    let Some(whole) = argument.get_help().map(ToString::to_string) else { return argument };
    match brief::option(&whole) {
        short if short != whole && argument.get_long_help().is_none() => {
            argument.help(short).long_help(whole)
        }
        short if short != whole => argument.help(short),
        _ => argument,
    }
}

/// Returns the text below the options of `--help`.
fn below_options(path: &str) -> String {
    let mut text = String::from("Examples:\n");
    for example in examples::of(path) {
        match example.line.len() {
            ..=36 => text += &format!("  {:<37}  {}\n", example.line, example.meaning),
            _ => text += &format!("  {}\n{:41}{}\n", example.line, "", example.meaning),
        }
    }
    text += "\nExit status:\n";
    for fact in exit_status(path) {
        text += &format!("  {:<5} {}\n", fact.name, fact.meaning);
    }
    text.trim_end().to_owned()
}
