//! `heapr snapshot summary FILE.heapr`: the snapshots of a file, and what one of them holds.

use std::process::ExitCode;

use heapr_filters::find_snapshot;
use heapr_query::{LineOrder, process_names};
use heapr_trace::{Snapshot, SnapshotTrigger, Trace};
use serde_json::Value;

use super::series::{Chosen, SeriesArguments, read};
use crate::output::print_table;
use crate::plain_text::line_width;
use crate::snapshot::verbs::{HeapKind, SummaryOrder, SummaryQuestion};
use heapr_table::quantity::{bytes, count, duration, plural};
use heapr_table::{Column, Table, row};

/// Runs the command.
pub(super) fn run(asked: &SummaryQuestion, options: &SeriesArguments) -> anyhow::Result<ExitCode> {
    let order = match asked.sort.unwrap_or(SummaryOrder::Bytes) {
        SummaryOrder::Bytes => LineOrder::Bytes,
        SummaryOrder::Count => LineOrder::Count,
        SummaryOrder::Oldest => LineOrder::Oldest,
        SummaryOrder::Youngest => LineOrder::Youngest,
        other => return other.refuse(HeapKind::Native),
    };
    let chosen = Chosen::open(&asked.file, |trace| {
        let text = options.filters.snapshot.as_deref().unwrap_or("last");
        Ok(vec![find_snapshot(trace, text)?.number])
    })?;
    let files = [chosen];
    let (series, warnings) = read(&files, options)?;
    let [Chosen { trace, .. }] = &files;
    let sorted = series.sorted(order);
    let Some(taken) = series.taken.first() else { anyhow::bail!("the snapshot is not there any more") };
    let mut sheet = options.sheet(
        "heapr.snapshot.summary/1",
        &[
            Column::bytes("block_bytes", "Bytes"),
            Column::count("block_count", "Blocks"),
            Column::ns("youngest_ns", "Youngest"),
            Column::ns("mean_age_ns", "Mean age"),
            Column::ns("oldest_ns", "Oldest"),
        ],
    );
    let lines = sorted.iter().map(|line| {
        let row = &line.rows[0];
        row![
            row.amount.block_bytes,
            row.amount.block_count,
            row.youngest_age_ns,
            row.mean_age_ns(),
            row.oldest_age_ns,
            line.frames.clone(),
        ]
    });
    sheet.rows(asked.output.top(), lines);
    let (whole, snapshot) = (&series.wholes[0], &taken.snapshot);
    sheet.fact("heap", "native");
    sheet.fact("file", asked.file.to_string_lossy());
    let all = trace.snapshots().iter().map(|snapshot| snapshot_json(trace, snapshot));
    sheet.fact("snapshots", all.collect::<Vec<_>>());
    sheet.fact("shown", snapshot.number);
    sheet.fact("total_bytes", whole.amount.block_bytes);
    sheet.fact("total_count", whole.amount.block_count);
    sheet.fact("warnings", warnings);
    let mut title = list(&asked.file.display().to_string(), trace);
    title.extend([
        String::new(),
        format!(
            "Snapshot {} at {} of {}: {} in {}, {} to {} old",
            snapshot.number,
            duration(snapshot.time_ns),
            taken.processes.join(", "),
            bytes(whole.amount.block_bytes),
            plural(whole.amount.block_count, "block"),
            duration(whole.youngest_age_ns),
            duration(whole.oldest_age_ns)
        ),
        String::new(),
        format!("{} of {}", options.nouns()[1].to_uppercase(), count(series.lines.len() as u64)),
    ]);
    print_table(&sheet, asked.output.format, &title)?;
    Ok(ExitCode::SUCCESS)
}

/// The snapshots of a file, one a line.
fn list(file: &str, trace: &Trace) -> Vec<String> {
    let snapshots = trace.snapshots();
    let head = format!("{file}: {}", plural(snapshots.len() as u64, "snapshot"));
    let columns = [
        Column::number("number", "#"),
        Column::ns("time_ns", "Time"),
        Column::text("trigger", "Why"),
        Column::count("block_count", "Blocks"),
        Column::bytes("block_bytes", "Bytes"),
        Column::bytes("bytes_delta", "Change"),
        Column::bytes("rss_bytes", "Resident"),
        Column::text("process", "Process"),
    ];
    let mut table = Table::new("heapr.snapshot.summary/1", &columns);
    let mut before: Option<&Snapshot> = None;
    for snapshot in snapshots {
        let change = before.map(|before| i128::from(snapshot.block_bytes) - i128::from(before.block_bytes));
        let resident: Vec<u64> = snapshot.processes.iter().filter_map(|process| process.rss_bytes).collect();
        let names = process_names(trace, snapshot);
        let process = match names.as_slice() {
            [name] => name.clone(),
            names => format!("{} processes", names.len()),
        };
        table.row(row![
            snapshot.number,
            snapshot.time_ns,
            if snapshot.name.is_empty() { why(snapshot.trigger) } else { snapshot.name.clone() },
            snapshot.block_count,
            snapshot.block_bytes,
            change,
            (!resident.is_empty()).then(|| resident.iter().sum::<u64>()),
            process,
        ]);
        before = Some(snapshot);
    }
    [vec![head, String::new()], table.lines(0, line_width())].concat()
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
