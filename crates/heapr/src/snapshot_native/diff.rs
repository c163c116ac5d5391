//! `heapr snapshot diff` of native snapshots: what is new, gone and grown, by stack, frame or image.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use heapr_query::{LiveAmount, LiveRow};
use serde_json::json;

use super::find::find_snapshot;
use super::line_table::{LineTable, OutputArguments};
use super::series::{Chosen, Line, SeriesArguments, Taken, read};
use crate::commands::report::Format;
use crate::report::quantity::{bytes, count, duration, parse_bytes, plural, signed_bytes, signed_count};
use crate::snapshot::sheet::Cell;

/// Arguments of `heapr snapshot diff` for native heaps.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArguments {
    /// One file, or two with a snapshot each, the older first
    #[arg(value_name = "FILE", num_args = 1..=2, required = true)]
    files: Vec<PathBuf>,
    /// Which two: numbers, names or `last` [default: first and last of one file; the last of each of two]
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    snapshots: Option<Vec<String>>,
    /// What is listed first
    #[arg(long, value_enum, default_value_t = Order::Change)]
    sort: Order,
    /// Exit with 1 if the live bytes have grown by more than this in all
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
    /// Most changed, up or down
    Change,
    /// Most grown
    Growth,
    /// Most bytes allocated since the first
    New,
    /// Most bytes freed since the first
    Gone,
}

/// What became of a line's blocks.
#[derive(Debug, Clone, Copy)]
struct Change {
    before: LiveAmount,
    after: LiveAmount,
    /// Allocated after the first snapshot and still there, and of the first and no longer there; known within one recording.
    turnover: Option<(LiveAmount, LiveAmount)>,
}

impl Change {
    fn of(before: &LiveRow, after: &LiveRow, is_one_recording: bool) -> Self {
        let kept = after.by_interval.first().copied().unwrap_or_default();
        let new = LiveAmount {
            block_count: after.amount.block_count.saturating_sub(kept.block_count),
            block_bytes: after.amount.block_bytes.saturating_sub(kept.block_bytes),
        };
        let gone = LiveAmount {
            block_count: before.amount.block_count.saturating_sub(kept.block_count),
            block_bytes: before.amount.block_bytes.saturating_sub(kept.block_bytes),
        };
        Self { before: before.amount, after: after.amount, turnover: is_one_recording.then_some((new, gone)) }
    }

    fn bytes(&self) -> i128 {
        i128::from(self.after.block_bytes) - i128::from(self.before.block_bytes)
    }

    fn blocks(&self) -> i128 {
        i128::from(self.after.block_count) - i128::from(self.before.block_count)
    }

    fn is_none(&self) -> bool {
        self.before == self.after
            && self.turnover.is_none_or(|(new, gone)| new.block_count + gone.block_count == 0)
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    ensure!(arguments.series.filters.snapshot().is_none(), "--snapshots A B chooses the two, not --snapshot");
    let series = read(&chosen(arguments)?, &arguments.series)?;
    let [before, after] = series.taken.as_slice() else {
        bail!("the two snapshots are one: name another with --snapshots A B")
    };
    let is_one_recording = before.is_of_recording(after);
    let mut lines: Vec<(Change, &Line)> = series
        .lines
        .iter()
        .map(|line| (Change::of(&line.rows[0], &line.rows[1], is_one_recording), line))
        .filter(|(change, _)| !change.is_none())
        .collect();
    let key = |change: &Change| match arguments.sort {
        Order::Change => i128::from(u64::try_from(change.bytes().unsigned_abs()).unwrap_or(u64::MAX)),
        Order::Growth => change.bytes(),
        Order::New => change.turnover.map_or(0, |(new, _)| i128::from(new.block_bytes)),
        Order::Gone => change.turnover.map_or(0, |(_, gone)| i128::from(gone.block_bytes)),
    };
    lines.sort_by(|(one, one_line), (other, other_line)| {
        key(other).cmp(&key(one)).then_with(|| one_line.frames.cmp(&other_line.frames))
    });
    let mut table = LineTable::new(
        arguments.series.by(),
        &[
            ("bytes_delta", "Change"),
            ("blocks_delta", "Blocks"),
            ("bytes_before", "Before"),
            ("bytes_after", "After"),
            ("bytes_new", "New"),
            ("blocks_new", "Blocks"),
            ("bytes_gone", "Gone"),
            ("blocks_gone", "Blocks"),
            ("state", ""),
        ],
    );
    table.rows(
        arguments.output.top(),
        lines.iter().map(|(change, line)| (cells(change), line.frames.clone())),
    );
    let whole = Change::of(&series.wholes[0], &series.wholes[1], is_one_recording);
    let mut out = BufWriter::new(std::io::stdout().lock());
    match arguments.output.format {
        Format::Text => {
            writeln!(out, "{}", name(before))?;
            writeln!(out, "{}", name(after))?;
            for warning in &series.warnings {
                writeln!(out, "WARNING: {warning}")?;
            }
            write_whole(&mut out, &whole, (before, after))?;
            writeln!(out, "\n{}: {} differ", table.title(), count(lines.len() as u64))?;
            table.write_text(&mut out)?;
        }
        Format::Json => {
            let value = json!({
                "schema": "heapr.native-snapshot-diff/1",
                "before": taken_json(before),
                "after": taken_json(after),
                "is_one_recording": is_one_recording,
                "bytes_delta": whole.bytes() as i64,
                "blocks_delta": whole.blocks() as i64,
                "warnings": series.warnings,
                "rows": table.json(),
            });
            writeln!(out, "{value:#}")?;
        }
        Format::Csv => table.write_csv(&mut out)?,
    }
    out.flush()?;
    if arguments.fail_if_growth.is_some_and(|limit| whole.bytes() > i128::from(limit)) {
        eprintln!("heapr: the live bytes have grown by {}", signed_bytes(whole.bytes()));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(arguments: &DiffArguments) -> anyhow::Result<Vec<Chosen>> {
    let asked = arguments.snapshots.as_deref();
    match arguments.files.as_slice() {
        [file] => {
            let chosen = Chosen::open(file, |trace| {
                let (first, last) = match asked {
                    Some([first, last]) => (find_snapshot(trace, first)?, find_snapshot(trace, last)?),
                    _ => {
                        let last = find_snapshot(trace, "last")?;
                        (&trace.snapshots()[0], last)
                    }
                };
                Ok(vec![first.number, last.number])
            })?;
            let [first, last] = chosen.numbers.as_slice() else { unreachable!("two were chosen above") };
            ensure!(
                first != last,
                "{} has one snapshot only: there is nothing to compare it with",
                file.display()
            );
            Ok(vec![chosen])
        }
        files => {
            let choose = |place: usize| {
                let text = asked.and_then(|asked| asked.get(place)).map_or("last", String::as_str);
                Chosen::open(&files[place], |trace| Ok(vec![find_snapshot(trace, text)?.number]))
                    .with_context(|| files[place].display().to_string())
            };
            Ok(vec![choose(0)?, choose(1)?])
        }
    }
}

fn cells(change: &Change) -> Vec<Cell> {
    let state = match (change.before.block_count, change.after.block_count) {
        (0, _) => "new",
        (_, 0) => "gone",
        _ if change.bytes() > 0 => "grown",
        _ if change.bytes() < 0 => "shrunk",
        _ => "same",
    };
    let turnover = |of: fn((LiveAmount, LiveAmount)) -> Cell| change.turnover.map_or(Cell::Nothing, of);
    let signed = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
    vec![
        Cell::SignedBytes(signed(change.bytes())),
        Cell::SignedCount(signed(change.blocks())),
        Cell::Bytes(change.before.block_bytes),
        Cell::Bytes(change.after.block_bytes),
        turnover(|(new, _)| Cell::Bytes(new.block_bytes)),
        turnover(|(new, _)| Cell::Count(new.block_count)),
        turnover(|(_, gone)| Cell::Bytes(gone.block_bytes)),
        turnover(|(_, gone)| Cell::Count(gone.block_count)),
        Cell::Text(state.to_owned()),
    ]
}

fn name(taken: &Taken) -> String {
    let snapshot = &taken.snapshot;
    let title = if snapshot.name.is_empty() { String::new() } else { format!(" {:?}", snapshot.name) };
    format!(
        "{}, snapshot {}{title} at {}: {} in {}",
        taken.file.display(),
        snapshot.number,
        duration(snapshot.time_ns),
        bytes(snapshot.block_bytes),
        plural(snapshot.block_count, "block")
    )
}

fn write_whole(
    out: &mut dyn Write,
    whole: &Change,
    (before, after): (&Taken, &Taken),
) -> std::io::Result<()> {
    let apart_ns = after.unix_ns.saturating_sub(before.unix_ns);
    writeln!(
        out,
        "\n{} and {} blocks in {}",
        signed_bytes(whole.bytes()),
        signed_count(whole.blocks()),
        duration(apart_ns)
    )?;
    match whole.turnover {
        Some((new, gone)) => writeln!(
            out,
            "  new   {} in {}, allocated since\n  gone  {} in {}, freed since",
            bytes(new.block_bytes),
            plural(new.block_count, "block"),
            bytes(gone.block_bytes),
            plural(gone.block_count, "block")
        ),
        None => writeln!(out, "  of two recordings: which blocks are the same is not known"),
    }
}

fn taken_json(taken: &Taken) -> serde_json::Value {
    json!({
        "file": taken.file.to_string_lossy(),
        "number": taken.snapshot.number,
        "name": taken.snapshot.name,
        "time_ns": taken.snapshot.time_ns,
        "unix_ns": taken.unix_ns,
        "bytes": taken.snapshot.block_bytes,
        "blocks": taken.snapshot.block_count,
        "processes": taken.processes,
    })
}
