//! `heapr snapshot diff` of native snapshots: what is new, gone and grown, by stack, frame or image.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use heapr_query::{Change, ChangeOrder, LiveAmount, Taken};
use serde_json::json;

use super::line_table::{LineTable, OutputArguments};
use super::series::{Chosen, SeriesArguments, read};
use crate::commands::report::Format;
use crate::plain_text::printed;
use crate::report::quantity::{bytes, count, duration, parse_bytes, plural, signed_bytes, signed_count};
use crate::snapshot::sheet::Cell;
use heapr_filters::find_snapshot;

/// Arguments of `heapr snapshot diff` for native heaps.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArguments {
    /// One file, or two with a snapshot each, the older first
    #[arg(value_name = "FILE", num_args = 1..=2, required = true)]
    files: Vec<PathBuf>,
    /// Which two: numbers, names or `last` [default: first and last of one file; the last of each of two]
    #[arg(long, action = clap::ArgAction::Set, num_args = 2, value_names = ["A", "B"])]
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

/// Runs the command.
pub(crate) fn run(arguments: &DiffArguments) -> anyhow::Result<ExitCode> {
    ensure!(arguments.series.filters.snapshot.is_none(), "--snapshots A B chooses the two, not --snapshot");
    let files = chosen(arguments)?;
    let (series, warnings) = read(&files, &arguments.series)?;
    let [before, after] = series.taken.as_slice() else {
        bail!("the two snapshots are one: name another with --snapshots A B")
    };
    let is_one_recording = series.is_one_recording();
    let lines = series.changes(match arguments.sort {
        Order::Change => ChangeOrder::Change,
        Order::Growth => ChangeOrder::Growth,
        Order::New => ChangeOrder::New,
        Order::Gone => ChangeOrder::Gone,
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
        lines.iter().map(|changed| (cells(&changed.change), changed.line.frames.clone())),
    );
    let whole = series.whole_change().context("there are no snapshots")?;
    let mut out = printed(arguments.output.format == Format::Text);
    match arguments.output.format {
        Format::Text => {
            writeln!(out, "{}", name(before, &files))?;
            writeln!(out, "{}", name(after, &files))?;
            for warning in &warnings {
                writeln!(out, "WARNING: {warning}")?;
            }
            write_whole(&mut out, &whole, (before, after))?;
            writeln!(out)?;
            writeln!(out, "{}: {} differ", table.title(), count(lines.len() as u64))?;
            table.write_text(&mut out, arguments.output.depth())?;
        }
        Format::Json => {
            let value = json!({
                "schema": "heapr.native-snapshot-diff/1",
                "before": taken_json(before, &files),
                "after": taken_json(after, &files),
                "is_one_recording": is_one_recording,
                "bytes_delta": whole.bytes() as i64,
                "blocks_delta": whole.blocks() as i64,
                "warnings": warnings,
                "rows": table.json(),
            });
            writeln!(out, "{value:#}")?;
        }
        Format::Csv => table.write_csv(&mut out)?,
    }
    out.flush()?;
    if arguments.fail_if_growth.is_some_and(|limit| whole.bytes() > i128::from(limit)) {
        tell!("heapr: the live bytes have grown by {}", signed_bytes(whole.bytes()));
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
        Cell::Text(change.state().to_owned()),
    ]
}

fn name(taken: &Taken, files: &[Chosen]) -> String {
    let snapshot = &taken.snapshot;
    let title = if snapshot.name.is_empty() { String::new() } else { format!(" {:?}", snapshot.name) };
    format!(
        "{}, snapshot {}{title} at {}: {} in {}",
        files[taken.file].file.display(),
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
    writeln!(out)?;
    writeln!(
        out,
        "{} and {} blocks in {}",
        signed_bytes(whole.bytes()),
        signed_count(whole.blocks()),
        duration(apart_ns)
    )?;
    match whole.turnover {
        Some((new, gone)) => {
            let held = |amount: &LiveAmount| {
                format!("{} in {}", bytes(amount.block_bytes), plural(amount.block_count, "block"))
            };
            writeln!(out, "  new   {}, allocated since", held(&new))?;
            writeln!(out, "  gone  {}, freed since", held(&gone))
        }
        None => writeln!(out, "  of two recordings: which blocks are the same is not known"),
    }
}

fn taken_json(taken: &Taken, files: &[Chosen]) -> serde_json::Value {
    json!({
        "file": files[taken.file].file.to_string_lossy(),
        "number": taken.snapshot.number,
        "name": taken.snapshot.name,
        "time_ns": taken.snapshot.time_ns,
        "unix_ns": taken.unix_ns,
        "bytes": taken.snapshot.block_bytes,
        "blocks": taken.snapshot.block_count,
        "processes": taken.processes,
    })
}
