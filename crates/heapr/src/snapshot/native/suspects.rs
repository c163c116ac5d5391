//! `heapr snapshot suspects` of native snapshots: stacks whose live bytes grow steadily.

use std::process::ExitCode;

use anyhow::ensure;
use heapr_filters::quantity::parse_bytes;
use heapr_query::{Confidence, SUSPECT_COLUMNS, Suspect, SuspectOrder, Taken, is_at_end};
use heapr_trace::Snapshot;
use serde_json::{Value, json};

use super::series::{Chosen, SeriesArguments, read};
use crate::output::print_table;
use crate::snapshot::verbs::SuspectsQuestion;
use heapr_table::quantity::{bytes, duration, plural};

/// What only native heaps can be asked for.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct SuspectsOptions {
    /// Only these snapshots of each file, by number [default: all that were not taken at a
    /// process's end]
    #[arg(long, value_name = "N", num_args = 1..)]
    snapshots: Vec<u32>,
    /// Leave out what has grown by less
    #[arg(long, value_name = "BYTES", default_value = "1K", value_parser = parse_bytes)]
    min_growth: u64,
    /// What is listed first among those of the same confidence
    #[arg(long, value_enum, default_value_t = Order::Oldest)]
    sort: Order,
    #[command(flatten)]
    series: SeriesArguments,
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
pub(super) fn run(asked: &SuspectsQuestion, options: &SuspectsOptions) -> anyhow::Result<ExitCode> {
    ensure!(
        options.series.filters.snapshot.is_none(),
        "--snapshots N… chooses snapshots here, not --snapshot"
    );
    let is_chosen = |snapshot: &&Snapshot| {
        if options.snapshots.is_empty() {
            !is_at_end(snapshot.trigger)
        } else {
            options.snapshots.contains(&snapshot.number)
        }
    };
    let numbers = |file: &std::path::PathBuf| {
        Chosen::open(file, |trace| {
            Ok(trace.snapshots().iter().filter(is_chosen).map(|snapshot| snapshot.number).collect())
        })
    };
    let files = asked.files.iter().map(numbers).collect::<anyhow::Result<Vec<_>>>()?;
    let (series, mut warnings) = read(&files, &options.series)?;
    let [first, .., last] = series.taken.as_slice() else {
        return Err(too_few(series.taken.len()));
    };
    ensure!(series.taken.len() >= 3, too_few(series.taken.len()));
    if series.taken.windows(2).any(|pair| pair[0].processes != pair[1].processes) {
        let others = "the snapshots are not all of the same processes: --pid chooses one";
        warn!("{others}");
        warnings.push(others.to_owned());
    }
    let order = match options.sort {
        Order::Oldest => SuspectOrder::Oldest,
        Order::Rate => SuspectOrder::Rate,
        Order::Growth => SuspectOrder::Growth,
    };
    let suspects = series.suspects(options.min_growth, order);
    let title = [
        format!(
            "{} in {}: {} to {}",
            plural(series.taken.len() as u64, "snapshot"),
            duration(last.unix_ns.saturating_sub(first.unix_ns)),
            bytes(first.snapshot.block_bytes),
            bytes(last.snapshot.block_bytes)
        ),
        match suspects.len() {
            1 => format!("1 {} that grows", options.series.nouns()[0]),
            number => format!("{number} {} that grow", options.series.nouns()[1]),
        },
        String::new(),
    ];
    let mut table = options.series.sheet("heapr.snapshot.suspects/1", &SUSPECT_COLUMNS);
    table.call_rows("suspects");
    table.fact("heap", "native");
    table.fact("files", asked.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>());
    table.fact("snapshots", series.taken.iter().map(|taken| moment_json(taken, &files)).collect::<Vec<_>>());
    table.fact("warnings", warnings);
    table.rows(asked.output.top(), suspects.iter().map(Suspect::row));
    print_table(&table, asked.output.format, &title)?;
    let is_over = |suspect: &Suspect<'_>| {
        asked.fail_if_growth.is_some_and(|limit| suspect.trend.growth > i128::from(limit))
            && suspect.confidence >= Confidence::Medium
    };
    Ok(if suspects.iter().any(is_over) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn too_few(number: usize) -> anyhow::Error {
    anyhow::anyhow!(
        "growth is seen in three or more snapshots, and there are {number}: `heapr run --snapshot-every SECONDS` and \
         `heapr snapshot every SECONDS PID` take them"
    )
}

fn moment_json(taken: &Taken, files: &[Chosen]) -> Value {
    json!({
        "file": files[taken.file].file.to_string_lossy(),
        "number": taken.snapshot.number,
        "unix_ns": taken.unix_ns,
        "block_bytes": taken.snapshot.block_bytes,
        "block_count": taken.snapshot.block_count,
    })
}
