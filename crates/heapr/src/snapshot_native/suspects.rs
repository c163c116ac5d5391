//! `heapr snapshot suspects` of native snapshots: stacks whose live bytes grow steadily.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use heapr_query::{Confidence, GroupBy, Suspect, SuspectJson, SuspectOrder, Taken, is_at_end};
use heapr_trace::Snapshot;
use serde_json::{Value, json};

use super::line_table::{LineTable, OutputArguments};
use super::series::{Chosen, SeriesArguments, read};
use crate::commands::report::Format;
use crate::plain_text::printed;
use crate::report::quantity::{bytes, duration, parse_bytes, plural};
use crate::snapshot::sheet::Cell;

/// Arguments of `heapr snapshot suspects` for native heaps.
#[derive(Debug, clap::Args)]
pub(crate) struct SuspectsArguments {
    /// Files with three or more snapshots in all, of one process
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Only these snapshots of each file, by number [default: all that were not taken at a process's end]
    #[arg(long, value_name = "N", num_args = 1..)]
    snapshots: Vec<u32>,
    /// Leave out what has grown by less
    #[arg(long, value_name = "BYTES", default_value = "1K", value_parser = parse_bytes)]
    min_growth: u64,
    /// What is listed first among those of the same confidence
    #[arg(long, value_enum, default_value_t = Order::Oldest)]
    sort: Order,
    /// Exit with 1 if a suspect of medium or high confidence has grown by more than this
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    fail_if_growth: Option<u64>,
    #[command(flatten)]
    series: SeriesArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Orders of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// Whose oldest live block is oldest; of similar age, who has grown more
    Oldest,
    /// Who grows fastest
    Rate,
    /// Who has grown most
    Growth,
}

/// Runs the command.
pub(crate) fn run(arguments: &SuspectsArguments) -> anyhow::Result<ExitCode> {
    ensure!(
        arguments.series.filters.snapshot.is_none(),
        "--snapshots N… chooses snapshots here, not --snapshot"
    );
    let is_chosen = |snapshot: &&Snapshot| {
        if arguments.snapshots.is_empty() {
            !is_at_end(snapshot.trigger)
        } else {
            arguments.snapshots.contains(&snapshot.number)
        }
    };
    let files = arguments
        .files
        .iter()
        .map(|file| {
            Chosen::open(file, |trace| {
                Ok(trace.snapshots().iter().filter(is_chosen).map(|snapshot| snapshot.number).collect())
            })
        })
        .collect::<anyhow::Result<Vec<_>>>()?;
    let (series, warnings) = read(&files, &arguments.series)?;
    ensure!(
        series.taken.len() >= 3,
        "growth is seen in three or more snapshots, and there are {}: `heapr run --snapshot-every SECONDS` and `heapr \
         snapshot every SECONDS PID` take them",
        series.taken.len()
    );
    let order = match arguments.sort {
        Order::Oldest => SuspectOrder::Oldest,
        Order::Rate => SuspectOrder::Rate,
        Order::Growth => SuspectOrder::Growth,
    };
    let suspects = series.suspects(arguments.min_growth, order);
    let mut out = printed(arguments.output.format == Format::Text);
    match arguments.output.format {
        Format::Text => write_text(&mut out, arguments, &series.taken, &warnings, &suspects)?,
        Format::Json => {
            let shown = suspects.iter().take(arguments.output.top());
            let value = json!({
                "schema": "heapr.native-snapshot-suspects/1",
                "files": arguments.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>(),
                "snapshots": series.taken.iter().map(|taken| moment_json(taken, &files)).collect::<Vec<_>>(),
                "warnings": warnings,
                "suspects": shown.map(SuspectJson::from).collect::<Vec<_>>(),
            });
            writeln!(out, "{value:#}")?;
        }
        Format::Csv => table(arguments, &suspects).write_csv(&mut out)?,
    }
    out.flush()?;
    let is_over = |suspect: &Suspect<'_>| {
        arguments.fail_if_growth.is_some_and(|limit| suspect.trend.growth > i128::from(limit))
            && suspect.confidence >= Confidence::Medium
    };
    Ok(if suspects.iter().any(is_over) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn write_text(
    out: &mut dyn Write,
    arguments: &SuspectsArguments,
    taken: &[Taken],
    warnings: &[String],
    suspects: &[Suspect<'_>],
) -> std::io::Result<()> {
    let (Some(first), Some(last)) = (taken.first(), taken.last()) else { return Ok(()) };
    writeln!(
        out,
        "{} in {}: {} to {}",
        plural(taken.len() as u64, "snapshot"),
        duration(last.unix_ns.saturating_sub(first.unix_ns)),
        bytes(first.snapshot.block_bytes),
        bytes(last.snapshot.block_bytes)
    )?;
    for warning in warnings {
        writeln!(out, "WARNING: {warning}")?;
    }
    if taken.windows(2).any(|pair| pair[0].processes != pair[1].processes) {
        writeln!(out, "WARNING: the snapshots are not all of the same processes: --pid chooses one")?;
    }
    let what = match arguments.series.by() {
        GroupBy::Frames => "frame",
        GroupBy::Images => "image",
        _ => "stack",
    };
    writeln!(
        out,
        "{} that grow{}",
        plural(suspects.len() as u64, what),
        if suspects.len() == 1 { "s" } else { "" }
    )?;
    writeln!(out)?;
    table(arguments, suspects).write_text(out, arguments.output.depth())
}

fn table(arguments: &SuspectsArguments, suspects: &[Suspect<'_>]) -> LineTable {
    let mut table = LineTable::new(
        arguments.series.by(),
        &[
            ("confidence", "Confidence"),
            ("bytes_per_hour", "Per hour"),
            ("growth_bytes", "Growth"),
            ("bytes", "Now"),
            ("blocks", "Blocks"),
            ("oldest_ns", "Oldest"),
            ("rising_percent", "Rising %"),
            ("chance", "Chance"),
            ("kept_percent", "Kept %"),
        ],
    );
    let rows = suspects.iter().map(|suspect| {
        let percent = |share: f64| Cell::Count((share * 100.0).round() as u64);
        let cells = vec![
            Cell::Text(suspect.confidence.name().to_owned()),
            Cell::SignedBytes(suspect.trend.per_hour as i64),
            Cell::SignedBytes(i64::try_from(suspect.trend.growth).unwrap_or(i64::MAX)),
            Cell::Bytes(suspect.last.amount.block_bytes),
            Cell::Count(suspect.last.amount.block_count),
            Cell::Duration(suspect.last.oldest_age_ns),
            percent(suspect.trend.rising_share),
            Cell::Text(format!("{:.2}", suspect.trend.chance)),
            suspect.kept_share.map_or(Cell::Nothing, percent),
        ];
        (cells, suspect.line.frames.clone())
    });
    table.rows(arguments.output.top(), rows);
    table
}

fn moment_json(taken: &Taken, files: &[Chosen]) -> Value {
    json!({
        "file": files[taken.file].file.to_string_lossy(),
        "number": taken.snapshot.number,
        "unix_ns": taken.unix_ns,
        "bytes": taken.snapshot.block_bytes,
        "blocks": taken.snapshot.block_count,
    })
}
