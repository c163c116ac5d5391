//! `heapr snapshot statistics`: bytes of a heap by kinds of objects.

use std::path::PathBuf;
use std::process::ExitCode;

use heapr_v8::StoredSummary;

use crate::output::{Format, print_table};
use crate::snapshot::native;
use crate::snapshot::v8::heap_file::{Wanted, open};
use crate::snapshot::v8::summary::headline;
use crate::snapshot::v8::summary_file;
use crate::snapshot::verbs::is_trace;
use heapr_table::quantity::percent;
use heapr_table::{Cell, Column, Table, row};

/// Arguments of `heapr snapshot statistics`.
#[derive(Debug, clap::Args)]
pub(crate) struct StatisticsArguments {
    /// The snapshot
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub(crate) fn run(arguments: StatisticsArguments) -> anyhow::Result<ExitCode> {
    if is_trace(&arguments.file) {
        return native::statistics(&arguments.file, arguments.format);
    }
    let summary = match summary_file::load(&arguments.file, "") {
        Some(summary) => summary,
        None => StoredSummary::without_classes(&*open(&arguments.file, Wanted::Classes)?),
    };
    let total_bytes = summary.statistics.total_bytes;
    let mut sheet = Table::new(
        "heapr.snapshot.statistics/1",
        &[Column::text("kind", "Kind"), Column::bytes("bytes", "Bytes"), Column::text("share", "Share")],
    );
    sheet.rows(
        usize::MAX,
        summary.bytes_by_kind().into_iter().map(|(key, heading, bytes)| {
            row![Cell::worded(key, heading), bytes, percent(bytes, total_bytes),]
        }),
    );
    print_table(&sheet, arguments.format, &[headline(&summary), String::new()])?;
    Ok(ExitCode::SUCCESS)
}
