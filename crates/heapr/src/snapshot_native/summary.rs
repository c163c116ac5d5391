//! `heapr snapshot summary FILE.heapr`: the snapshots of a file, and what one of them holds.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_query::{LineOrder, process_names};
use heapr_trace::{Snapshot, SnapshotTrigger, Trace};
use serde_json::{Value, json};

use super::line_table::{LineTable, OutputArguments};
use super::series::{Chosen, SeriesArguments, read};
use crate::commands::report::Format;
use crate::plain_text::{line_width, printed};
use crate::report::quantity::{bytes, count, duration, plural, signed_bytes};
use crate::report::table::{Align, Table};
use crate::snapshot::sheet::Cell;
use heapr_filters::find_snapshot;

/// Arguments of `heapr snapshot summary` for native heaps.
#[derive(Debug, clap::Args)]
pub(crate) struct SummaryArguments {
    /// The trace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What is listed first
    #[arg(long, value_enum, default_value_t = Order::Bytes)]
    sort: Order,
    #[command(flatten)]
    series: SeriesArguments,
    #[command(flatten)]
    output: OutputArguments,
}

/// Orders of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// Most bytes
    Bytes,
    /// Most blocks
    Count,
    /// Oldest block
    Oldest,
    /// Youngest block
    Youngest,
}

/// Runs the command.
pub(crate) fn run(arguments: &SummaryArguments) -> anyhow::Result<ExitCode> {
    let chosen = Chosen::open(&arguments.file, |trace| {
        let text = arguments.series.filters.snapshot.as_deref().unwrap_or("last");
        Ok(vec![find_snapshot(trace, text)?.number])
    })?;
    let files = [chosen];
    let (series, warnings) = read(&files, &arguments.series)?;
    let [chosen] = files;
    let sorted = series.sorted(match arguments.sort {
        Order::Bytes => LineOrder::Bytes,
        Order::Count => LineOrder::Count,
        Order::Oldest => LineOrder::Oldest,
        Order::Youngest => LineOrder::Youngest,
    });
    let Some(taken) = series.taken.first() else { anyhow::bail!("the snapshot is not there any more") };
    let mut table = LineTable::new(
        arguments.series.by(),
        &[
            ("bytes", "Bytes"),
            ("blocks", "Blocks"),
            ("youngest_ns", "Youngest"),
            ("mean_age_ns", "Mean age"),
            ("oldest_ns", "Oldest"),
        ],
    );
    let lines = sorted.iter().map(|line| {
        let row = &line.rows[0];
        let cells = vec![
            Cell::Bytes(row.amount.block_bytes),
            Cell::Count(row.amount.block_count),
            Cell::Duration(row.youngest_age_ns),
            Cell::Duration(row.mean_age_ns()),
            Cell::Duration(row.oldest_age_ns),
        ];
        (cells, line.frames.clone())
    });
    table.rows(arguments.output.top(), lines);
    let mut out = printed(arguments.output.format == Format::Text);
    let (whole, trace) = (&series.wholes[0], &chosen.trace);
    match arguments.output.format {
        Format::Text => {
            write_list(&mut out, &arguments.file.display().to_string(), trace)?;
            for warning in &warnings {
                writeln!(out, "WARNING: {warning}")?;
            }
            let snapshot = &taken.snapshot;
            writeln!(out)?;
            writeln!(
                out,
                "Snapshot {} at {} of {}: {} in {}, {} to {} old",
                snapshot.number,
                duration(snapshot.time_ns),
                taken.processes.join(", "),
                bytes(whole.amount.block_bytes),
                plural(whole.amount.block_count, "block"),
                duration(whole.youngest_age_ns),
                duration(whole.oldest_age_ns)
            )?;
            writeln!(out)?;
            writeln!(out, "{} of {}", table.title(), count(series.lines.len() as u64))?;
            table.write_text(&mut out, arguments.output.depth())?;
        }
        Format::Json => {
            let value = json!({
                "schema": "heapr.native-snapshot-summary/1",
                "file": arguments.file.to_string_lossy(),
                "snapshots": trace.snapshots().iter().map(|snapshot| snapshot_json(trace, snapshot)).collect::<Vec<_>>(),
                "shown": taken.snapshot.number,
                "bytes": whole.amount.block_bytes,
                "blocks": whole.amount.block_count,
                "warnings": warnings,
                "rows": table.json(),
            });
            writeln!(out, "{value:#}")?;
        }
        Format::Csv => table.write_csv(&mut out)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The snapshots of a file, one a line.
fn write_list(out: &mut dyn Write, file: &str, trace: &Trace) -> std::io::Result<()> {
    let snapshots = trace.snapshots();
    writeln!(out, "{file}: {}", plural(snapshots.len() as u64, "snapshot"))?;
    writeln!(out)?;
    let columns = [
        ("#", Align::Right),
        ("Time", Align::Right),
        ("Why", Align::Left),
        ("Blocks", Align::Right),
        ("Bytes", Align::Right),
        ("Change", Align::Right),
        ("Resident", Align::Right),
        ("Process", Align::Left),
    ];
    let mut table = Table::new(&columns, 7);
    let mut before: Option<&Snapshot> = None;
    for snapshot in snapshots {
        let change = before.map(|before| i128::from(snapshot.block_bytes) - i128::from(before.block_bytes));
        let resident: Vec<u64> = snapshot.processes.iter().filter_map(|process| process.rss_bytes).collect();
        let names = process_names(trace, snapshot);
        let process = match names.as_slice() {
            [name] => name.clone(),
            names => format!("{} processes", names.len()),
        };
        table.row(vec![
            snapshot.number.to_string(),
            duration(snapshot.time_ns),
            if snapshot.name.is_empty() { why(snapshot.trigger) } else { snapshot.name.clone() },
            count(snapshot.block_count),
            bytes(snapshot.block_bytes),
            change.map(signed_bytes).unwrap_or_default(),
            if resident.is_empty() { String::new() } else { bytes(resident.iter().sum()) },
            process,
        ]);
        before = Some(snapshot);
    }
    table.lines(0, line_width()).iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// A trigger in words.
pub(crate) fn why(trigger: SnapshotTrigger) -> String {
    match trigger {
        SnapshotTrigger::Request => "asked for".to_owned(),
        SnapshotTrigger::Interval { interval_ms } => {
            format!("every {}", duration(interval_ms.saturating_mul(1_000_000)))
        }
        SnapshotTrigger::Rss { threshold_bytes } => format!("resident {}", bytes(threshold_bytes)),
        SnapshotTrigger::Growth { percent } => format!("grown {percent} %"),
        SnapshotTrigger::Signal { signal } => format!("signal {signal}"),
        SnapshotTrigger::Exit => "exit".to_owned(),
        SnapshotTrigger::Killed { signal } => format!("killed by {signal}"),
        SnapshotTrigger::OutOfMemory => "out of memory".to_owned(),
        SnapshotTrigger::Other { number } => format!("reason {number}"),
    }
}

/// A snapshot without its blocks.
pub(crate) fn snapshot_json(trace: &Trace, snapshot: &Snapshot) -> Value {
    heapr_server::snapshot_json(trace, snapshot, &why(snapshot.trigger))
}
