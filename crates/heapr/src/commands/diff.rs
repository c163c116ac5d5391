//! `heapr diff`: two traces compared by stack, frame or image.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use heapr_query::{Action, Answer, GroupBy, Metrics, Query, SortKey, file_name};
use serde_json::json;

use crate::commands::report::{Format, open, subject_of_report};
use crate::plain_text::{line_width, printed};
use crate::report::csv::quoted;
use crate::report::filter_arguments::FilterArguments;
use crate::report::frame_text::cut_middle;
use crate::report::names::{NameArguments, TraceNames};
use crate::report::quantity::{bytes, count, parse_bytes, signed_bytes, signed_count};

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
    /// What is compared: so (outstanding bytes), soc, st (total), stc, src, peak
    #[arg(long, value_name = "KEY", default_value = "so")]
    sort: String,
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
    groups: HashMap<Identity, Metrics>,
    whole: Metrics,
    /// What is wrong with the recording.
    warnings: Vec<String>,
}

struct Line {
    identity: Identity,
    before: Metrics,
    after: Metrics,
}

/// Runs the command.
pub(crate) fn run(arguments: DiffArguments) -> anyhow::Result<ExitCode> {
    let sort = SortKey::parse(&arguments.sort).ok_or_else(|| {
        let names: Vec<&str> = SortKey::ALL.iter().map(|&(name, _)| name).collect();
        anyhow::anyhow!("--sort {}: it is one of {}", arguments.sort, names.join(", "))
    })?;
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
        before: Metrics::default(),
        after,
    }));
    let delta = |before: &Metrics, after: &Metrics| i128::from(sort.of(after)) - i128::from(sort.of(before));
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
        actions: vec![Action::Ranking { by, sort: SortKey::default() }],
        top: usize::MAX,
        ..Query::default()
    };
    let mut names = TraceNames::new(&trace, &arguments.names);
    let report = heapr_query::run(&trace, &query, &mut names).with_context(|| file.display().to_string())?;
    let subject = subject_of_report(file, &trace, &report, String::new());
    subject.tell_warnings();
    let mut groups: HashMap<Identity, Metrics> = HashMap::new();
    let mut whole = Metrics::default();
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
            groups.entry(identity.collect()).or_default().add(&group.metrics);
            whole.add(&group.metrics);
        }
    }
    Ok(Side { groups, whole, warnings: subject.warnings() })
}

fn write_text(
    out: &mut impl Write,
    arguments: &DiffArguments,
    sort: SortKey,
    (before, after): (&Metrics, &Metrics),
    lines: &[Line],
    top: usize,
) -> std::io::Result<()> {
    let amount = |value: u64| if sort.is_bytes() { bytes(value) } else { count(value) };
    let signed = |delta: i128| if sort.is_bytes() { signed_bytes(delta) } else { signed_count(delta) };
    writeln!(out, "{} -> {}", arguments.before.display(), arguments.after.display())?;
    writeln!(out)?;
    writeln!(out, "{:14} {:>14} {:>14} {:>14}", "", "before", "after", "delta")?;
    for (name, key) in [
        ("outstanding", "so"),
        ("  blocks", "soc"),
        ("total", "st"),
        ("  allocations", "stc"),
        ("reallocs", "src"),
        ("at peak", "peak"),
    ] {
        let Some(key) = SortKey::parse(key) else { continue };
        let (one, other) = (key.of(before), key.of(after));
        let delta = i128::from(other) - i128::from(one);
        let show = |value| if key.is_bytes() { bytes(value) } else { count(value) };
        let delta = if key.is_bytes() { signed_bytes(delta) } else { signed_count(delta) };
        writeln!(out, "{name:14} {:>14} {:>14} {delta:>14}", show(one), show(other))?;
    }
    writeln!(out)?;
    writeln!(out, "{} of {} that differ, by {}:", lines.len().min(top), lines.len(), sort.name())?;
    let width = line_width();
    for line in lines.iter().take(top) {
        let (one, other) = (sort.of(&line.before), sort.of(&line.after));
        let delta = i128::from(other) - i128::from(one);
        writeln!(out)?;
        writeln!(out, "{:>14}  ({} -> {})", signed(delta), amount(one), amount(other))?;
        if line.identity.is_empty() {
            writeln!(out, "      (no stack)")?;
        }
        for frame in &line.identity {
            writeln!(out, "      {}", cut_middle(frame, width.saturating_sub(6)))?;
        }
    }
    Ok(())
}

fn metrics_json(metrics: &Metrics) -> serde_json::Value {
    json!({
        "outstanding_bytes": metrics.outstanding_bytes,
        "outstanding_count": metrics.outstanding_count,
        "total_bytes": metrics.total_bytes,
        "total_count": metrics.total_count,
        "realloc_count": metrics.realloc_count,
        "peak_bytes": metrics.peak_bytes,
    })
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
            json!({ "frames": line.identity, "before": metrics_json(&line.before), "after": metrics_json(&line.after) })
        })
        .collect();
    let side = |file: &Path, side: &Side| {
        json!({
            "file": file.display().to_string(),
            "warnings": side.warnings,
            "totals": metrics_json(&side.whole),
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
    const COLUMNS: [&str; 6] = ["so", "soc", "st", "stc", "src", "peak"];
    writeln!(
        out,
        "name,outstanding_bytes_before,outstanding_bytes_after,outstanding_count_before,outstanding_count_after,\
         total_bytes_before,total_bytes_after,total_count_before,total_count_after,\
         realloc_count_before,realloc_count_after,peak_bytes_before,peak_bytes_after"
    )?;
    for line in lines.iter().take(top) {
        write!(out, "{}", quoted(&line.identity.join(" <- ")))?;
        for key in COLUMNS.iter().filter_map(|key| SortKey::parse(key)) {
            write!(out, ",{},{}", key.of(&line.before), key.of(&line.after))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
