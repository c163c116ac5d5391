//! `heapr info`: the contents of a trace file.

use heapr_table::json_text::write_json;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;

use crate::info::{json, text};
use crate::plain_text::{line_width, printed};
use crate::trace_file::{named_or_newest, open, other_builds};

/// Arguments of `heapr info`.
#[derive(Debug, clap::Args)]
pub(crate) struct InfoArguments {
    /// The trace [default: the newest in this folder]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// To be read
    Text,
    /// For programs
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: InfoArguments) -> anyhow::Result<ExitCode> {
    let InfoArguments { file, format } = arguments;
    let file = named_or_newest(file, "info")?;
    let _busy = crate::busy_line::begin(format!("reading {}", file.display()));
    let trace = open(&file)?;
    let shown = file.display().to_string();
    let file_bytes = std::fs::metadata(&file).with_context(|| format!("cannot read {shown}"))?.len();
    // Checks also the parts that are otherwise read on demand: events, checkpoints, blocks of
    // snapshots.
    let damaged = trace.check();
    if let Some(others) = other_builds(&trace) {
        warn!("{shown}: {others}");
    }
    let mut out = printed(format == Format::Text);
    match format {
        Format::Text => text::write_text(&mut out, &trace, &shown, file_bytes, &damaged, line_width())?,
        Format::Json => {
            write_json(&mut out, &json::value(&trace, &shown, file_bytes, &damaged), true)?;
            writeln!(out)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
