//! `heapr snapshot diff` of native snapshots: new, freed and grown blocks by stack, frame or image.
//! Two snapshots with references are also compared by holder.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use heapr_filters::{FilterArguments, find_snapshot};
use heapr_query::{Change, ChangeOrder, LineChange, Taken};
use serde_json::json;

use super::held_growth::{self, HeldGrowth};
use super::held_text::{changes_in_words, holder_json};
use super::series::{Chosen, SeriesArguments, read};
use crate::output::print_table;
use crate::snapshot::limit::{TOTAL, exit_status};
use crate::snapshot::verbs::DiffQuestion;
use heapr_table::quantity::{bytes, count, duration, signed_bytes, signed_count, within};
use heapr_table::{Cell, Column, row};

/// Options for native heaps only.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct DiffOptions {
    /// Which two: numbers, names or `last` [default: first and last of one file; the last of each
    /// of two]
    #[arg(long, action = clap::ArgAction::Set, num_args = 2, value_names = ["A", "B"])]
    snapshots: Option<Vec<String>>,
    /// Order of the list
    #[arg(long, value_enum, default_value_t = Order::Change)]
    sort: Order,
    #[command(flatten)]
    series: SeriesArguments,
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
pub(super) fn run(asked: &DiffQuestion, options: &DiffOptions) -> anyhow::Result<ExitCode> {
    ensure!(options.series.filters.snapshot.is_none(), "--snapshots A B chooses the two, not --snapshot");
    if let Some(limit) = asked.fail_if_growth.iter().find(|limit| limit.class != TOTAL) {
        bail!("--fail-if-growth {}=…: native heaps have no classes: give an amount alone", limit.class);
    }
    let files = chosen(&asked.files, options.snapshots.as_deref(), &options.series.filters)?;
    let read = read(&files, &options.series)?;
    let (series, mut warnings) = (&read.series, read.warnings.clone());
    let [before, after] = series.taken.as_slice() else {
        bail!("the two snapshots are one: name another with --snapshots A B")
    };
    let lines = series.changes(match options.sort {
        Order::Change => ChangeOrder::Change,
        Order::Growth => ChangeOrder::Growth,
        Order::New => ChangeOrder::New,
        Order::Gone => ChangeOrder::Gone,
    });
    let mut sheet = options.series.sheet(
        "heapr.snapshot.diff/1",
        &[
            Column::bytes("bytes_delta", "Change"),
            Column::count("count_delta", "Blocks"),
            Column::bytes("before_bytes", "Before"),
            Column::bytes("after_bytes", "After"),
            Column::bytes("new_bytes", "New"),
            Column::count("new_count", "Blocks"),
            Column::bytes("gone_bytes", "Gone"),
            Column::count("gone_count", "Blocks"),
            Column::text("state", ""),
        ],
    );
    let row =
        |changed: &LineChange<'_>| [cells(&changed.change), vec![read.frames_cell(changed.line)]].concat();
    sheet.rows(asked.output.top(), lines.iter().map(row));
    let whole = series.whole_change().context("there are no snapshots")?;
    sheet.fact("heap", "native");
    sheet.fact("before", taken_json(before, &files));
    sheet.fact("after", taken_json(after, &files));
    sheet.fact("is_one_recording", series.is_one_recording());
    sheet.fact("bytes_delta", signed(whole.bytes()));
    sheet.fact("count_delta", signed(whole.blocks()));
    let halves = [whole.bytes_plus_minus(), whole.blocks_plus_minus()];
    let halves = ["bytes_delta_plus_minus", "count_delta_plus_minus"].into_iter().zip(halves);
    sheet.facts(halves.filter(|(_, half)| *half > 0));
    let graphs = held_growth::points(&series.taken, &files, &options.series, &mut warnings);
    sheet.fact("warnings", warnings);
    let mut title = vec![name(before, &files), name(after, &files), String::new()];
    title.extend(whole_lines(&whole, (before, after)));
    let graphs = Some(graphs).filter(|graphs| graphs.len() == 2);
    let held = graphs.map(|graphs| HeldGrowth::read(graphs, series.is_one_recording()));
    if let Some(held) = held.transpose()?.flatten() {
        title.push(String::new());
        title.extend(changes_in_words(&held, asked.output.top()));
        sheet.fact("holders", held.holders.iter().map(holder_json).collect::<Vec<_>>());
    }
    let noun = options.series.nouns()[1].to_uppercase();
    title.extend([String::new(), format!("{noun}: {} differ", count(lines.len() as u64))]);
    print_table(&sheet, asked.output.format, &title)?;
    let grown = (signed(whole.blocks()), signed(whole.bytes()));
    Ok(exit_status(&asked.fail_if_growth, "block", |_| grown))
}

fn signed(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Returns the snapshots that `asked` names.
fn chosen(
    files: &[PathBuf],
    asked: Option<&[String]>,
    filters: &FilterArguments,
) -> anyhow::Result<Vec<Chosen>> {
    ensure!(files.len() <= 2, "two snapshots of native heaps are compared, of one trace or of two");
    match files {
        [file] => {
            let chosen = Chosen::open(file, filters, |trace| {
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
                Chosen::open(&files[place], filters, |trace| Ok(vec![find_snapshot(trace, text)?.number]))
                    .with_context(|| files[place].display().to_string())
            };
            Ok(vec![choose(0)?, choose(1)?])
        }
    }
}

fn cells(change: &Change) -> Vec<Cell> {
    let (new, gone) = change.turnover.unzip();
    row![
        Cell::from(change.bytes()).within(change.bytes_plus_minus()),
        Cell::from(change.blocks()).within(change.blocks_plus_minus()),
        change.before.bytes_cell(),
        change.after.bytes_cell(),
        new.map(|new| new.bytes_cell()),
        new.map(|new| new.count_cell()),
        gone.map(|gone| gone.bytes_cell()),
        gone.map(|gone| gone.count_cell()),
        change.state(),
    ]
}

fn name(taken: &Taken, files: &[Chosen]) -> String {
    let snapshot = &taken.snapshot;
    let title = if snapshot.name.is_empty() { String::new() } else { format!(" {:?}", snapshot.name) };
    format!(
        "{}, snapshot {}{title} at {}: {}",
        files[taken.file].file.display(),
        snapshot.number,
        duration(snapshot.time_ns),
        taken.amount.in_words()
    )
}

/// Returns lines on the change in total.
fn whole_lines(whole: &Change, (before, after): (&Taken, &Taken)) -> Vec<String> {
    let of = |change: String, half: String, plus_minus: u64| {
        if plus_minus == 0 { change } else { within(&change, &half) }
    };
    let change = format!(
        "{} and {} blocks in {}",
        of(signed_bytes(whole.bytes()), bytes(whole.bytes_plus_minus()), whole.bytes_plus_minus()),
        of(signed_count(whole.blocks()), count(whole.blocks_plus_minus()), whole.blocks_plus_minus()),
        duration(after.unix_ns.saturating_sub(before.unix_ns))
    );
    match whole.turnover {
        Some((new, gone)) => vec![
            change,
            format!("  new   {}, allocated since", new.in_words()),
            format!("  gone  {}, freed since", gone.in_words()),
        ],
        None => vec![change, "  of two recordings: which blocks are the same is not known".to_owned()],
    }
}

fn taken_json(taken: &Taken, files: &[Chosen]) -> serde_json::Value {
    json!({
        "file": files[taken.file].file.to_string_lossy(),
        "number": taken.snapshot.number,
        "name": taken.snapshot.name,
        "time_ns": taken.snapshot.time_ns,
        "unix_ns": taken.unix_ns,
        "block_bytes": taken.amount.bytes.value,
        "block_bytes_plus_minus": taken.amount.bytes_plus_minus(),
        "block_count": taken.amount.count.value,
        "block_count_plus_minus": taken.amount.count_plus_minus(),
        "processes": taken.processes,
    })
}
