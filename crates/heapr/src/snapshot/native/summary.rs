//! `heapr snapshot summary FILE.heapr`: lists the snapshots of a file, or the contents of one.

use std::collections::HashMap;
use std::process::ExitCode;
use std::rc::Rc;

use heapr_filters::find_snapshot;
use heapr_native::LeakKind;
use heapr_query::{LineOrder, process_names};
use heapr_trace::{BlockEstimate, Snapshot, SnapshotTrigger, Trace};
use serde_json::{Value, json};

use super::graph_answers::GraphAnswers;
use super::held::Held;
use super::held_growth::{self, GraphPoint};
use super::series::{Chosen, SeriesArguments, read};
use crate::output::print_table;
use crate::plain_text::{line_width, one_line};
use crate::snapshot::verbs::{HeapKind, SummaryOrder, SummaryQuestion};
use heapr_table::SortRows as _;
use heapr_table::quantity::{bytes, count, duration, plural};
use heapr_table::{Cell, Column, Table, row};

/// Runs the command.
pub(super) fn run(asked: &SummaryQuestion, options: &SeriesArguments) -> anyhow::Result<ExitCode> {
    let order = match asked.sort.unwrap_or(SummaryOrder::Bytes) {
        SummaryOrder::Bytes => LineOrder::Bytes,
        SummaryOrder::Count => LineOrder::Count,
        SummaryOrder::Oldest => LineOrder::Oldest,
        SummaryOrder::Youngest => LineOrder::Youngest,
        other => return other.refuse(HeapKind::Native),
    };
    let chosen = Chosen::open(&asked.file, &options.filters, |trace| {
        let text = options.filters.snapshot.as_deref().unwrap_or("last");
        Ok(vec![find_snapshot(trace, text)?.number])
    })?;
    let files = [chosen];
    let read = read(&files, options)?;
    let (series, mut warnings) = (&read.series, read.warnings.clone());
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
            row.amount.bytes_cell(),
            row.amount.count_cell(),
            row.youngest_age_ns,
            row.mean_age_ns(),
            row.oldest_age_ns,
            read.frames_cell(line),
        ]
    });
    sheet.rows(asked.output.top(), lines);
    let (whole, snapshot) = (&series.wholes[0], &taken.snapshot);
    sheet.fact("heap", "native");
    sheet.fact("file", asked.file.to_string_lossy());
    let all = trace.snapshots().iter().map(|snapshot| snapshot_json(trace, snapshot));
    sheet.fact("snapshots", all.collect::<Vec<_>>());
    sheet.fact("shown", snapshot.number);
    sheet.fact("total_bytes", whole.amount.bytes.value);
    sheet.fact("total_count", whole.amount.count.value);
    sheet.facts(interval_facts(whole.amount, ["total_bytes_plus_minus", "total_count_plus_minus"]));
    let graphs = held_growth::points(&series.taken, &files, options, &mut warnings);
    sheet.fact("warnings", warnings);
    let mut title = list(&asked.file.display().to_string(), trace);
    title.extend([
        String::new(),
        format!(
            "Snapshot {} at {} of {}: {}, {} to {} old",
            snapshot.number,
            duration(snapshot.time_ns),
            taken.processes.join(", "),
            whole.amount.in_words(),
            duration(whole.youngest_age_ns),
            duration(whole.oldest_age_ns)
        ),
        String::new(),
    ]);
    let mut answers = None;
    if let Some(point) = graphs.first() {
        let (lines, fact, of_graph) = graph_in_words(point)?;
        title.extend(lines);
        sheet.fact("graph", fact);
        answers = Some(of_graph);
    }
    title.push(format!("{} of {}", options.nouns()[1].to_uppercase(), count(series.lines.len() as u64)));
    print_table(&sheet, asked.output.format, &title)?;
    answers.into_iter().for_each(GraphAnswers::keep);
    Ok(ExitCode::SUCCESS)
}

/// Returns lines and JSON on a snapshot's references: leaks, and the largest holders.
fn graph_in_words(point: &GraphPoint) -> anyhow::Result<(Vec<String>, Value, GraphAnswers)> {
    const HOLDERS: usize = 5;
    let mut answers = GraphAnswers::of(point.choose()?, point.names());
    let mut leaked: HashMap<LeakKind, Held> = HashMap::new();
    for (kind, sum) in answers.leaks()?.all() {
        let all = leaked.entry(kind).or_default();
        all.bytes += sum.bytes;
        all.count += sum.count;
    }
    let leaked = |kind: LeakKind| leaked.get(&kind).copied().unwrap_or_default();
    let (definite, indirect, possible) =
        (leaked(LeakKind::Definite), leaked(LeakKind::Indirect), leaked(LeakKind::Possible));
    let file = Rc::clone(&answers.chosen);
    let mut order: Vec<&(String, Held)> =
        answers.holders()?.iter().filter(|(_, held)| held.count > 0).collect();
    order.sort_rows_by_key(|(_, held)| std::cmp::Reverse((held.bytes, held.count)));
    order.truncate(HOLDERS);
    let reference_count = file.facts.reference_count;
    let mut lines = vec![format!(
        "{}: {} leaked in {}, {} more with those in {}, {} possibly leaked in {}",
        plural(reference_count, "reference"),
        bytes(definite.bytes),
        plural(definite.count, "block"),
        bytes(indirect.bytes),
        plural(indirect.count, "block"),
        bytes(possible.bytes),
        plural(possible.count, "block"),
    )];
    lines.extend(file.doubt().filter(|_| possible.count > 0));
    lines.push("Who holds most (heapr snapshot holders tells more):".to_owned());
    lines.extend(order.iter().map(|(name, held)| {
        format!("  {:>10} in {}: {}", bytes(held.bytes), plural(held.count, "block"), one_line(name))
    }));
    lines.push(String::new());
    let holders = order.iter().map(|(name, held)| {
        json!({
            "holder": name,
            "retained_bytes": held.bytes,
            "retained_count": held.count,
        })
    });
    let fact = json!({
        "reference_count": reference_count,
        "definite_count": definite.count,
        "definite_bytes": definite.bytes,
        "indirect_count": indirect.count,
        "indirect_bytes": indirect.bytes,
        "possible_count": possible.count,
        "possible_bytes": possible.bytes,
        "holders": holders.collect::<Vec<_>>(),
        "pause_ns": file.facts.pause_ns,
        "doubt": file.doubt(),
        "notes": file.facts.notes,
    });
    Ok((lines, fact, answers))
}

/// Lists the snapshots of a file, one a line.
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
    let mut before: Option<BlockEstimate> = None;
    for snapshot in snapshots {
        let amount = trace.snapshot_estimate(snapshot);
        let change = before.map(|before| {
            // Each is an estimate of its own at worst: blocks in both snapshots are in either
            // estimate.
            let mut both = before;
            both += amount;
            let change = i128::from(amount.bytes.value) - i128::from(before.bytes.value);
            Cell::from(change).within(both.bytes_plus_minus())
        });
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
            amount.count_cell(),
            amount.bytes_cell(),
            change,
            (!resident.is_empty()).then(|| resident.iter().sum::<u64>()),
            process,
        ]);
        before = Some(amount);
    }
    [vec![head, String::new()], table.lines(0, line_width())].concat()
}

/// Returns half of the intervals of an estimated total.
pub(super) fn interval_facts(
    amount: BlockEstimate,
    names: [&'static str; 2],
) -> impl Iterator<Item = (&'static str, u64)> {
    let halves = [amount.bytes_plus_minus(), amount.count_plus_minus()];
    names.into_iter().zip(halves).filter(|(_, half)| *half > 0)
}

/// Describes a trigger in words.
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

/// Returns a snapshot without its blocks, as JSON.
pub(crate) fn snapshot_json(trace: &Trace, snapshot: &Snapshot) -> Value {
    heapr_server::snapshot_json(trace, snapshot, &why(snapshot.trigger))
}
