//! `heapr snapshot suspects` of native snapshots: stacks whose live bytes grow steadily.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::ensure;
use heapr_query::{GroupBy, LiveRow, Trend};
use heapr_trace::{Snapshot, SnapshotTrigger};
use serde_json::{Value, json};

use super::line_table::{LineTable, OutputArguments};
use super::series::{Chosen, Line, SeriesArguments, Taken, read};
use crate::commands::report::Format;
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
    /// What is listed first among those of the same sureness
    #[arg(long, value_enum, default_value_t = Order::Oldest)]
    sort: Order,
    /// Exit with 1 if a suspect of medium or high sureness has grown by more than this
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
    /// Whose oldest live block is oldest
    Oldest,
    /// Who grows fastest
    Rate,
    /// Who has grown most
    Growth,
}

/// How sure it is that a stack leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sureness {
    Low,
    Medium,
    High,
}

impl Sureness {
    /// What speaks for a leak: an order that chance would hardly make, and blocks of each interval that nobody has freed (what
    /// only works more has young blocks only). `None`: nothing does.
    fn of(trend: &Trend, kept_share: Option<f64>) -> Option<Self> {
        if trend.growth <= 0 || trend.rising_share < 0.5 || trend.chance > 0.2 {
            return None;
        }
        let keeps_all = kept_share.is_some_and(|share| share >= 0.99);
        let keeps_none = kept_share.is_some_and(|share| share <= 0.34);
        let by_order = match trend.chance {
            ..=0.01 => Self::High,
            ..=0.05 => Self::Medium,
            _ => Self::Low,
        };
        Some(match by_order {
            _ if keeps_none => Self::Low,
            Self::Medium if keeps_all => Self::High,
            Self::Low if keeps_all && trend.rising_share >= 1.0 => Self::Medium,
            by_order => by_order,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A line that grows.
struct Suspect<'a> {
    line: &'a Line,
    last: &'a LiveRow,
    trend: Trend,
    sureness: Sureness,
    /// Share of the intervals between snapshots of which blocks are still live.
    kept_share: Option<f64>,
}

/// Runs the command.
pub(crate) fn run(arguments: &SuspectsArguments) -> anyhow::Result<ExitCode> {
    ensure!(
        arguments.series.filters.snapshot().is_none(),
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
    let series = read(&files, &arguments.series)?;
    ensure!(
        series.taken.len() >= 3,
        "growth is seen in three or more snapshots, and there are {}: `heapr run --snapshot-every SECONDS` and `heapr \
         snapshot every SECONDS PID` take them",
        series.taken.len()
    );
    let mut suspects: Vec<Suspect<'_>> = series
        .lines
        .iter()
        .filter_map(|line| suspect(line, &series.taken))
        .filter(|suspect| suspect.trend.growth >= i128::from(arguments.min_growth))
        .collect();
    suspects.sort_by(|one, other| {
        let by_order = match arguments.sort {
            Order::Oldest => other.last.oldest_age_ns.cmp(&one.last.oldest_age_ns),
            Order::Rate => other.trend.per_hour.total_cmp(&one.trend.per_hour),
            Order::Growth => other.trend.growth.cmp(&one.trend.growth),
        };
        let by_sureness = other.sureness.cmp(&one.sureness);
        by_sureness.then(by_order).then_with(|| one.line.frames.cmp(&other.line.frames))
    });
    let mut out = BufWriter::new(std::io::stdout().lock());
    match arguments.output.format {
        Format::Text => write_text(&mut out, arguments, &series.taken, &series.warnings, &suspects)?,
        Format::Json => {
            let shown = suspects.iter().take(arguments.output.top());
            let value = json!({
                "schema": "heapr.native-snapshot-suspects/1",
                "files": arguments.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>(),
                "snapshots": series.taken.iter().map(moment_json).collect::<Vec<_>>(),
                "warnings": series.warnings,
                "suspects": shown.map(suspect_json).collect::<Vec<_>>(),
            });
            writeln!(out, "{value:#}")?;
        }
        Format::Csv => table(arguments, &suspects).write_csv(&mut out)?,
    }
    out.flush()?;
    let is_over = |suspect: &Suspect<'_>| {
        arguments.fail_if_growth.is_some_and(|limit| suspect.trend.growth > i128::from(limit))
            && suspect.sureness >= Sureness::Medium
    };
    Ok(if suspects.iter().any(is_over) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn is_at_end(trigger: SnapshotTrigger) -> bool {
    matches!(trigger, SnapshotTrigger::Exit | SnapshotTrigger::Killed { .. } | SnapshotTrigger::OutOfMemory)
}

fn suspect<'a>(line: &'a Line, taken: &[Taken]) -> Option<Suspect<'a>> {
    let points: Vec<(u64, u64)> =
        taken.iter().zip(&line.rows).map(|(taken, row)| (taken.unix_ns, row.amount.block_bytes)).collect();
    let trend = Trend::of(&points)?;
    let last = line.rows.last()?;
    let is_one_recording = taken.windows(2).all(|pair| pair[0].is_of_recording(&pair[1]));
    // Interval 0 is before the first snapshot, the last one after the last: neither lies between two.
    let between = last.by_interval.get(1..taken.len()).filter(|_| is_one_recording);
    let kept_share = between.map(|between| {
        let kept = between.iter().filter(|amount| amount.block_count > 0).count();
        kept as f64 / between.len().max(1) as f64
    });
    let sureness = Sureness::of(&trend, kept_share)?;
    Some(Suspect { line, last, trend, sureness, kept_share })
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
        "{} that grow{}\n",
        plural(suspects.len() as u64, what),
        if suspects.len() == 1 { "s" } else { "" }
    )?;
    table(arguments, suspects).write_text(out)
}

fn table(arguments: &SuspectsArguments, suspects: &[Suspect<'_>]) -> LineTable {
    let mut table = LineTable::new(
        arguments.series.by(),
        &[
            ("sureness", "Sure"),
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
            Cell::Text(suspect.sureness.name().to_owned()),
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

fn moment_json(taken: &Taken) -> Value {
    json!({
        "file": taken.file.to_string_lossy(),
        "number": taken.snapshot.number,
        "unix_ns": taken.unix_ns,
        "bytes": taken.snapshot.block_bytes,
        "blocks": taken.snapshot.block_count,
    })
}

fn suspect_json(suspect: &Suspect<'_>) -> Value {
    let bytes: Vec<u64> = suspect.line.rows.iter().map(|row| row.amount.block_bytes).collect();
    let blocks: Vec<u64> = suspect.line.rows.iter().map(|row| row.amount.block_count).collect();
    json!({
        "sureness": suspect.sureness.name(),
        "bytes_per_hour": suspect.trend.per_hour,
        "growth_bytes": suspect.trend.growth as i64,
        "rising_share": suspect.trend.rising_share,
        "chance": suspect.trend.chance,
        "kept_share": suspect.kept_share,
        "oldest_ns": suspect.last.oldest_age_ns,
        "bytes": bytes,
        "blocks": blocks,
        "frames": suspect.line.frames,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trend(chance: f64, rising_share: f64, growth: i128) -> Trend {
        Trend { per_hour: 1.0, rising_share, chance, growth }
    }

    #[test]
    fn sureness_needs_an_order_that_chance_hardly_makes_or_blocks_that_stay() {
        let rising = |chance| trend(chance, 1.0, 10);
        assert_eq!(Sureness::of(&rising(1.0 / 6.0), None), Some(Sureness::Low));
        assert_eq!(Sureness::of(&rising(1.0 / 6.0), Some(1.0)), Some(Sureness::Medium));
        assert_eq!(Sureness::of(&rising(1.0 / 24.0), Some(1.0)), Some(Sureness::High));
        assert_eq!(Sureness::of(&rising(1.0 / 120.0), None), Some(Sureness::High));
        assert_eq!(Sureness::of(&rising(1.0 / 120.0), Some(0.25)), Some(Sureness::Low), "all is young");
    }

    #[test]
    fn what_does_not_grow_is_no_suspect() {
        assert_eq!(Sureness::of(&trend(0.001, 1.0, 0), None), None);
        assert_eq!(Sureness::of(&trend(0.5, 0.6, 10), Some(1.0)), None);
        assert_eq!(Sureness::of(&trend(0.01, 0.4, 10), Some(1.0)), None);
    }
}
