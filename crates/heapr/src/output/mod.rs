//! Destination and form of results, for all commands.

mod default_folder;
mod destination;
mod output_file;
mod printing;

pub(crate) use default_folder::DefaultPath;
pub(crate) use destination::{
    Output, file_path, growing_output, output, refuse_binary_on_terminal, refuse_inputs,
};
pub(crate) use output_file::{OutputFile, already_exists};
pub(crate) use printing::{OutputArguments, end_output, print_table};

/// Forms of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// To be read
    Text,
    /// For programs; see docs/report.md
    Json,
    /// For spreadsheets
    Csv,
}

/// Lines, stacks or other items of a list as text, without `--top`.
pub(crate) const DEFAULT_TOP: usize = 20;
/// Returns the value of `--top`. Its default is [`DEFAULT_TOP`] for people, and all items for
/// programs.
pub(crate) fn top(asked: Option<usize>, format: Format, is_for_program: bool) -> usize {
    asked.unwrap_or(if format == Format::Text && !is_for_program { DEFAULT_TOP } else { usize::MAX })
}
