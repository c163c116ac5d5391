//! `heapr snapshot suspects` of native snapshots: stacks whose live bytes grow steadily. For
//! snapshots with references, also the holders that hold ever more.

use std::process::ExitCode;

use anyhow::ensure;
use heapr_filters::quantity::parse_bytes;
use heapr_query::{Confidence, SUSPECT_COLUMNS, Suspect, SuspectOrder, Taken, is_at_end};
use heapr_trace::Snapshot;
use serde_json::{Value, json};

use super::held_growth::{self, HeldGrowth, HolderGrowth};
use super::held_text::{holder_json, suspects_in_words};
use super::series::{Chosen, SeriesArguments, read};
use crate::output::{Format, print_table};
use crate::snapshot::verbs::SuspectsQuestion;
use heapr_table::quantity::{bytes, duration, plural};

/// Share of a single heap, in percent, from which a holder is listed.
const LARGE_PERCENT: u128 = 10;

/// Options for native heaps only.
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
    /// Order of suspects of the same confidence
    #[arg(long, value_enum, default_value_t = Order::Oldest)]
    sort: Order,
    #[command(flatten)]
    series: SeriesArguments,
}

/// Orders of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Order {
    /// By the age of the oldest live block; of similar age, by growth
    Oldest,
    /// By growth per time
    Rate,
    /// By growth
    Growth,
}

impl From<Order> for SuspectOrder {
    fn from(order: Order) -> Self {
        match order {
            Order::Oldest => Self::Oldest,
            Order::Rate => Self::Rate,
            Order::Growth => Self::Growth,
        }
    }
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
        Chosen::open(file, &options.series.filters, |trace| {
            Ok(trace.snapshots().iter().filter(is_chosen).map(|snapshot| snapshot.number).collect())
        })
    };
    let files = asked.files.iter().map(numbers).collect::<anyhow::Result<Vec<_>>>()?;
    let read = read(&files, &options.series)?;
    let (series, mut warnings) = (&read.series, read.warnings.clone());
    let graphs = held_growth::points(&series.taken, &files, &options.series, &mut warnings);
    let graph_count = graphs.len();
    // Of a single graph the largest holders are listed.
    ensure!(series.taken.len() >= 3 || graph_count == 1, too_few(series.taken.len()));
    let held = match graph_count {
        0 | 2 => None,
        _ => HeldGrowth::read(graphs, series.is_one_recording())?,
    };
    let held_suspects = held.as_ref().map_or_else(Vec::new, |held| suspects_of(held, options.min_growth));
    let [first, .., last] = series.taken.as_slice() else {
        return print_largest(asked, options, held.as_ref(), &held_suspects, warnings);
    };
    if series.taken.windows(2).any(|pair| pair[0].processes != pair[1].processes) {
        let others = "the snapshots are not all of the same processes: --pid chooses one";
        warn!("{others}");
        warnings.push(others.to_owned());
    }
    let suspects = series.suspects(options.min_growth, options.sort.into());
    let mut title = vec![
        format!(
            "{} in {}: {} to {}",
            plural(series.taken.len() as u64, "snapshot"),
            duration(last.unix_ns.saturating_sub(first.unix_ns)),
            first.amount.bytes_in_words(),
            last.amount.bytes_in_words()
        ),
        String::new(),
    ];
    if let Some(held) = &held {
        title.extend([held_title(held_suspects.len(), held.points.len()), String::new()]);
        let shown = held_suspects.iter().take(asked.output.top()).copied();
        title.extend(suspects_in_words(shown, true));
    }
    title.extend([
        match suspects.len() {
            1 => format!("1 {} that grows", options.series.nouns()[0]),
            number => format!("{number} {} that grow", options.series.nouns()[1]),
        },
        String::new(),
    ]);
    let mut table = options.series.sheet("heapr.snapshot.suspects/1", &SUSPECT_COLUMNS);
    table.call_rows("suspects");
    table.fact("heap", "native");
    table.fact("files", asked.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>());
    table.fact("snapshots", series.taken.iter().map(|taken| moment_json(taken, &files)).collect::<Vec<_>>());
    table.fact("warnings", warnings);
    if held.is_some() {
        table.fact("holders", held_suspects.iter().copied().map(holder_json).collect::<Vec<_>>());
    }
    let row = |suspect: &Suspect<'_>| suspect.row(read.frames_cell(suspect.line));
    table.rows(asked.output.top(), suspects.iter().map(row));
    print_table(&table, asked.output.format, &title)?;
    let is_over =
        asked.fail_if_growth.is_some_and(|limit| is_over(i128::from(limit), &suspects, &held_suspects));
    Ok(if is_over { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the holders that grow; of a single graph those that hold a large part of it.
fn suspects_of(held: &HeldGrowth, min_growth: u64) -> Vec<&HolderGrowth> {
    let is_growth = held.points.len() > 1;
    let is_suspect = |holder: &&HolderGrowth| match is_growth {
        true => holder.confidence.is_some() && holder.growth_bytes() >= i128::from(min_growth),
        false => u128::from(holder.last().bytes) * 100 >= u128::from(held.block_bytes) * LARGE_PERCENT,
    };
    held.holders.iter().filter(is_suspect).collect()
}

fn held_title(holder_count: usize, graph_count: usize) -> String {
    let graphs = plural(graph_count as u64, "graph");
    match holder_count {
        0 => format!("HELD BY: no variable, stack or mapping holds ever more alone, by {graphs}"),
        1 => format!("HELD BY: 1 variable, stack or mapping holds ever more alone, by {graphs}"),
        more => format!("HELD BY: {more} variables, stacks or mappings hold ever more alone, by {graphs}"),
    }
}

/// True if a stack or a holder has grown by more than a limit in bytes, and that is not in doubt.
fn is_over(limit: i128, suspects: &[Suspect<'_>], holders: &[&HolderGrowth]) -> bool {
    let is_over =
        |suspect: &Suspect<'_>| suspect.trend.growth > limit && suspect.confidence >= Confidence::Medium;
    let is_holder_over = |holder: &&HolderGrowth| {
        holder.growth_bytes() > limit && holder.confidence >= Some(Confidence::Medium)
    };
    suspects.iter().any(is_over) || holders.iter().any(is_holder_over)
}

/// Prints the largest holders of a single graph, and where they collect blocks.
fn print_largest(
    asked: &SuspectsQuestion,
    options: &SuspectsOptions,
    held: Option<&HeldGrowth>,
    largest: &[&HolderGrowth],
    warnings: Vec<String>,
) -> anyhow::Result<ExitCode> {
    let Some(held) = held else { return Err(too_few(1)) };
    let mut title = vec![
        match largest.len() {
            0 => format!("nothing alone holds {LARGE_PERCENT} % of {}", bytes(held.block_bytes)),
            more => format!(
                "{} {LARGE_PERCENT} % or more of {} alone; what grows is seen in three snapshots or more",
                if more == 1 { "1 holds".to_owned() } else { format!("{more} hold") },
                bytes(held.block_bytes)
            ),
        },
        String::new(),
    ];
    title.extend(suspects_in_words(largest.iter().take(asked.output.top()).copied(), false));
    if asked.output.format == Format::Text {
        title.iter().for_each(|line| say!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = options.series.sheet("heapr.snapshot.suspects/1", &SUSPECT_COLUMNS);
    table.call_rows("suspects");
    table.fact("heap", "native");
    table.fact("files", asked.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>());
    table.fact("warnings", warnings);
    table.fact("holders", largest.iter().copied().map(holder_json).collect::<Vec<_>>());
    print_table(&table, asked.output.format, &[])?;
    Ok(ExitCode::SUCCESS)
}

fn too_few(number: usize) -> anyhow::Error {
    anyhow::anyhow!(
        "growth is seen in three or more snapshots, and there are {number} (one of a process's end counts only if \
         --snapshots names it): `heapr run --snapshot-every SECONDS` and `heapr snapshot every SECONDS PID` take them"
    )
}

fn moment_json(taken: &Taken, files: &[Chosen]) -> Value {
    json!({
        "file": files[taken.file].file.to_string_lossy(),
        "number": taken.snapshot.number,
        "unix_ns": taken.unix_ns,
        "block_bytes": taken.amount.bytes.value,
        "block_bytes_plus_minus": taken.amount.bytes_plus_minus(),
        "block_count": taken.amount.count.value,
        "block_count_plus_minus": taken.amount.count_plus_minus(),
    })
}
