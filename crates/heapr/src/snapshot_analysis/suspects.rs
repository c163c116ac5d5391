//! `heapr snapshot suspects`: which object keeps growing, where it was made and what holds it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::analysis::{self, Confidence};

use super::{single, suspects_json, suspects_text};
use crate::commands::report::Format;
use crate::plain_text::printed;
use crate::report::quantity::parse_bytes;
use crate::snapshot::heap_file::{Wanted, open};

/// Arguments of `heapr snapshot suspects`.
#[derive(Debug, clap::Args)]
pub(crate) struct SuspectsArguments {
    /// Snapshots of one process in the order of time; with a single one the largest owners are listed
    #[arg(value_name = "FILE", required = true)]
    pub(super) files: Vec<PathBuf>,
    /// Most suspects
    #[arg(long, value_name = "N", default_value_t = 5)]
    top: usize,
    /// Exit with 1 if a suspect of medium or high confidence has grown by more than this
    #[arg(long, value_name = "BYTES")]
    fail_if_growth: Option<String>,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub(super) fn run(arguments: SuspectsArguments) -> anyhow::Result<ExitCode> {
    let limit = arguments.fail_if_growth.as_deref().map(parse_bytes).transpose()?;
    // Indexes are not written for several files: that takes memory while all of them are there.
    let wanted = if arguments.files.len() == 1 { Wanted::Everything } else { Wanted::Dominators };
    let heaps = arguments.files.iter().map(|file| open(file, wanted)).collect::<anyhow::Result<Vec<_>>>()?;
    if let [heap] = heaps.as_slice() {
        anyhow::ensure!(limit.is_none(), "--fail-if-growth needs two snapshots");
        return single::run(heap, arguments.top, arguments.format);
    }
    let found = analysis::suspects(&heaps.iter().map(|heap| &**heap).collect::<Vec<_>>(), arguments.top);
    let mut out = printed(arguments.format == Format::Text);
    match arguments.format {
        Format::Text => suspects_text::write(&mut out, &arguments.files, &found)?,
        Format::Json => writeln!(out, "{:#}", suspects_json::value(&arguments.files, &found))?,
        Format::Csv => suspects_json::write_csv(&mut out, &found)?,
    }
    out.flush()?;
    let is_over = |suspect: &analysis::Suspect| {
        limit.is_some_and(|limit| i128::from(suspect.growth_bytes) > i128::from(limit))
            && suspect.confidence >= Confidence::Medium
    };
    Ok(if found.suspects.iter().any(is_over) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
