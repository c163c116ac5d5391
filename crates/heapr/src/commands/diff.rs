//! `heapr diff`: two traces compared by stack, frame or image.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use heapr_query::json::AmountsJson;
use heapr_query::{Action, Answer, GroupBy, Metric, Query, file_name};
use heapr_trace::Amounts;
use serde_json::json;

use crate::commands::report::{Format, open, subject_of_report};
use crate::plain_text::{line_width, printed};
use crate::report::action_arguments::sort_key;
use crate::report::csv::quoted;
use crate::report::filter_arguments::FilterArguments;
use crate::report::frame_text::cut_middle;
use crate::report::names::{NameArguments, TraceNames};
use crate::report::quantity::{parse_bytes, signed_bytes, signed_count};
use crate::report::text::amount;

/// Arguments of `heapr diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArguments {
    /// The trace before
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The trace after
    #[arg(value_name = "B")]
    after: PathBuf,
    /// Compare by whole stack (the default)
    #[arg(long)]
    stacks: bool,
    /// Compare by innermost frame
    #[arg(long, conflicts_with = "stacks")]
    frames: bool,
    /// Compare by module of the innermost frame
    #[arg(long, conflicts_with_all = ["stacks", "frames"])]
    images: bool,
    /// What is compared
    #[arg(long, value_name = "KEY", default_value = Metric::default().key(), ignore_case = true, value_parser = sort_key())]
    sort: Metric,
    #[command(flatten)]
    filters: FilterArguments,
    #[command(flatten)]
    names: NameArguments,
    /// Most items [default: 20; all as json and csv]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Exit with 1 if the compared amount has grown by more than this in all
    #[arg(long, value_name = "AMOUNT")]
    fail_if_growth: Option<String>,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What is the same in both traces, whatever the addresses and builds: names of modules and functions.
type Identity = Vec<String>;

/// What a trace holds.
struct Side {
    groups: HashMap<Identity, Amounts>,
    whole: Amounts,
    /// What is wrong with the recording.
    warnings: Vec<String>,
}

struct Line {
    identity: Identity,
    before: Amounts,
    after: Amounts,
}

/// Runs the command.
pub(crate) fn run(arguments: DiffArguments) -> anyhow::Result<ExitCode> {
    let sort = arguments.sort;
    let by = match (arguments.frames, arguments.images) {
        (true, _) => GroupBy::Frames,
        (_, true) => GroupBy::Images,
        _ => GroupBy::Stacks,
    };
    let limit =
        arguments.fail_if_growth.as_deref().map(parse_bytes).transpose().context("--fail-if-growth")?;
    let mut before = side(&arguments.before, by, &arguments)?;
    let mut after = side(&arguments.after, by, &arguments)?;
    let mut lines: Vec<Line> = std::mem::take(&mut before.groups)
        .into_iter()
        .map(|(identity, before)| {
            let after = after.groups.remove(&identity).unwrap_or_default();
            Line { identity, before, after }
        })
        .collect();
    lines.extend(std::mem::take(&mut after.groups).into_iter().map(|(identity, after)| Line {
        identity,
        before: Amounts::default(),
        after,
    }));
    let delta = |before: &Amounts, after: &Amounts| sort.difference(before, after);
    lines.retain(|line| line.before != line.after);
    lines.sort_by(|one, other| {
        let amount = |line: &Line| delta(&line.before, &line.after);
        amount(other).abs().cmp(&amount(one).abs()).then_with(|| one.identity.cmp(&other.identity))
    });
    let growth = delta(&before.whole, &after.whole);
    let mut out = printed(arguments.format == Format::Text);
    match arguments.format {
        Format::Text => {
            let top = arguments.top.unwrap_or(20);
            write_text(&mut out, &arguments, sort, (&before.whole, &after.whole), &lines, top)?;
        }
        Format::Json => write_json(&mut out, &arguments, (&before, &after), &lines)?,
        Format::Csv => write_csv(&mut out, &lines, arguments.top.unwrap_or(usize::MAX))?,
    }
    out.flush()?;
    if limit.is_some_and(|limit| growth > i128::from(limit)) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Amounts by identity, and of all. What is wrong with the recording is told on standard error: the amounts may be too small
/// for a comparison.
fn side(file: &Path, by: GroupBy, arguments: &DiffArguments) -> anyhow::Result<Side> {
    let trace = open(file)?;
    let query = Query {
        filter: arguments.filters.filter(&trace)?,
        cull: arguments.filters.cull_list()?,
        actions: vec![Action::Ranking { by, sort: Metric::default() }],
        top: usize::MAX,
        ..Query::default()
    };
    let mut names = TraceNames::new(&trace, &arguments.names);
    let report = heapr_query::run(&trace, &query, &mut names).with_context(|| file.display().to_string())?;
    let subject = subject_of_report(file, &trace, &report, String::new());
    subject.tell_warnings();
    let mut groups: HashMap<Identity, Amounts> = HashMap::new();
    let mut whole = Amounts::default();
    for section in &report.sections {
        let Answer::Ranking(ranking) = &section.answer else { continue };
        for group in &ranking.groups {
            // A frame without a name is told by its module alone: its offset is another in each build.
            let frames = report.frames(group);
            let identity = frames.iter().map(|frame| {
                let module = file_name(frame.module.unwrap_or("?"));
                match (by, frame.symbol) {
                    (GroupBy::Images, _) => module.to_owned(),
                    (_, Some(symbol)) => format!("{module}!{symbol}"),
                    (_, None) => format!("{module}!?"),
                }
            });
            *groups.entry(identity.collect()).or_default() += &group.amounts;
            whole += &group.amounts;
        }
    }
    Ok(Side { groups, whole, warnings: subject.warnings() })
}

fn write_text(
    out: &mut impl Write,
    arguments: &DiffArguments,
    sort: Metric,
    (before, after): (&Amounts, &Amounts),
    lines: &[Line],
    top: usize,
) -> std::io::Result<()> {
    let signed = |metric: Metric, before: &Amounts, after: &Amounts| {
        let delta = metric.difference(before, after);
        if metric.is_bytes() { signed_bytes(delta) } else { signed_count(delta) }
    };
    writeln!(out, "{} -> {}", arguments.before.display(), arguments.after.display())?;
    writeln!(out)?;
    writeln!(out, "{:18} {:>14} {:>14} {:>14}", "", "before", "after", "delta")?;
    for metric in Metric::all() {
        let (one, other) = (amount(metric, before), amount(metric, after));
        writeln!(out, "{:18} {one:>14} {other:>14} {:>14}", metric.words(), signed(metric, before, after))?;
    }
    writeln!(out)?;
    writeln!(out, "{} of {} that differ, by {}:", lines.len().min(top), lines.len(), sort.key())?;
    let width = line_width();
    for line in lines.iter().take(top) {
        let (one, other) = (amount(sort, &line.before), amount(sort, &line.after));
        writeln!(out)?;
        writeln!(out, "{:>14}  ({one} -> {other})", signed(sort, &line.before, &line.after))?;
        if line.identity.is_empty() {
            writeln!(out, "      (no stack)")?;
        }
        for frame in &line.identity {
            writeln!(out, "      {}", cut_middle(frame, width.saturating_sub(6)))?;
        }
    }
    Ok(())
}

fn write_json(
    out: &mut impl Write,
    arguments: &DiffArguments,
    (before, after): (&Side, &Side),
    lines: &[Line],
) -> anyhow::Result<()> {
    let groups: Vec<_> = lines
        .iter()
        .take(arguments.top.unwrap_or(usize::MAX))
        .map(|line| {
            json!({ "frames": line.identity, "before": AmountsJson::from(&line.before), "after": AmountsJson::from(&line.after) })
        })
        .collect();
    let side = |file: &Path, side: &Side| {
        json!({
            "file": file.display().to_string(),
            "warnings": side.warnings,
            "totals": AmountsJson::from(&side.whole),
        })
    };
    let whole = json!({
        "schema": "heapr.diff/1",
        "before": side(&arguments.before, before),
        "after": side(&arguments.after, after),
        "groups": groups,
    });
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)?;
    Ok(())
}

fn write_csv(out: &mut impl Write, lines: &[Line], top: usize) -> std::io::Result<()> {
    let head = Metric::all().map(|metric| format!(",{0}_before,{0}_after", metric.name()));
    writeln!(out, "name{}", head.collect::<String>())?;
    for line in lines.iter().take(top) {
        write!(out, "{}", quoted(&line.identity.join(" <- ")))?;
        for metric in Metric::all() {
            write!(out, ",{},{}", metric.of(&line.before), metric.of(&line.after))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
