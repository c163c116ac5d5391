//! `heapr report`: the heap actions on a trace.

use heapr_table::json_text::json_lines;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use heapr_export::Subject;
use heapr_findings::Judged;
use heapr_query::{Action, GroupBy, HistogramOf, Metric, Query, Report, StackGroups, Suppressions};
use heapr_trace::Trace;

use crate::finding_text;
use crate::output::{Format, output, refuse_inputs, top};
use crate::own_arguments::OwnArguments;
use crate::plain_text::line_width;
use crate::report::action_arguments::{ActionArguments, sort_key};
use crate::report::free_stacks::{self, FreeReport};
use crate::report::names::{NameArguments, TraceNames};
use crate::report::progress_bar::ProgressBar;
use crate::report::text::TextOptions;
use crate::report::{csv, json, marked_range, text, xperf};
use crate::style::Style;
use crate::trace_file::{named_or_newest, open, other_builds, tell_warnings};
use heapr_files::Existing;
use heapr_filters::FilterArguments;

/// Arguments of `heapr report`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArguments {
    /// The trace [default: the newest in this folder]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    actions: ActionArguments,
    #[command(flatten)]
    filters: FilterArguments,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    own: OwnArguments,
    /// Print a histogram
    #[arg(long, value_enum, ignore_case = true, help_heading = "Actions")]
    histogram: Vec<HistogramKind>,
    /// Sort key of actions that are given without one [default: so]
    #[arg(long, value_name = "KEY", ignore_case = true, value_parser = sort_key(), help_heading = "Actions")]
    sort: Option<Metric>,
    /// Most items of each action [default: 20; all as json, csv and in xperf's layout]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    top: Option<usize>,
    /// Show the callers that free, by the stack of the call (recorded with
    /// --stack-events alloc,realloc,free), that free twice, and that free unknown blocks
    #[arg(long, conflicts_with_all = ["histogram", "totals", "layout"])]
    free_stacks: bool,
    /// Only events between the allocations of two blocks of these sizes, which the plugin for
    /// pytest makes
    #[arg(long, value_names = ["B1", "B2"], num_args = 2, action = clap::ArgAction::Set, hide = true, conflicts_with = "range")]
    between_blocks: Option<Vec<u64>>,
    /// Print the totals; nothing else that is not asked for
    #[arg(long)]
    totals: bool,
    /// Most frames printed of a stack [default: all; 12 where no action is given]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    depth: Option<usize>,
    /// Format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Layout of the text: heapr's own or that of xperf's heap action
    #[arg(long, value_enum, default_value_t = Layout::Heapr)]
    layout: Layout,
    /// Write to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
}

/// Quantity that a histogram shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum HistogramKind {
    /// Sizes of allocations
    Size,
    /// Times between allocation and free
    Lifetime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Layout {
    /// heapr's own
    Heapr,
    /// xperf's
    Xperf,
}

/// Frames shown of a stack if no action is given.
const DEFAULT_DEPTH_SHOWN: usize = 12;

/// Runs the command.
pub(crate) fn run(mut arguments: ReportArguments) -> anyhow::Result<ExitCode> {
    let file = arguments.file.take().or_else(|| arguments.actions.take_file().map(PathBuf::from));
    let file = named_or_newest(file, "report")?;
    let is_xperf = arguments.layout == Layout::Xperf;
    anyhow::ensure!(
        !is_xperf || arguments.format == Format::Text,
        "--layout xperf is a layout of text: leave out --format"
    );
    refuse_inputs(arguments.output.as_deref(), &file, &arguments.filters)?;
    let _busy = crate::busy_line::begin(format!("reading {}", file.display()));
    let trace = arguments.filters.shown(open(&file)?);
    if let Some(sizes) = &arguments.between_blocks {
        arguments.filters.range = Some(marked_range::range(&trace, &file, sizes)?);
    }
    if arguments.free_stacks {
        return free_stacks(&arguments, &file, &trace);
    }
    let mut query = Query {
        filter: arguments.filters.filter(&trace)?,
        cull: arguments.filters.cull_list()?,
        actions: arguments.actions.actions(arguments.sort.unwrap_or_default())?,
        histograms: arguments.histogram.iter().map(|kind| kind.of()).collect(),
        top: top(arguments.top, arguments.format, is_xperf),
        // The other formats show no lines.
        tells_lines: arguments.format != Format::Csv && !is_xperf,
        ..Query::default()
    };
    if is_xperf {
        refuse_without_xperf(&query)?;
    }
    let is_default = query.actions.is_empty() && query.histograms.is_empty() && !arguments.totals;
    if is_default {
        query.actions.push(Action::Ranking { by: GroupBy::Stacks, sort: arguments.sort.unwrap_or_default() });
    }
    let mut names = TraceNames::new(&trace, &arguments.names);
    let mut bar = ProgressBar::new("reading events");
    let report =
        heapr_query::run_with_progress(&trace, &query, &mut names, &mut |read, all| bar.show(read, all))?;
    drop(bar);
    let mut subject = Subject::new(&file, &trace, &report.damage, arguments.filters.counted());
    subject.advice = names.advice();
    subject.warnings.extend(other_builds(&trace));
    subject.own = arguments.own.code(&trace)?;
    let is_text = arguments.format == Format::Text;
    if is_text {
        subject.own_memory = heapr_export::own_memory_by_name(&trace, &subject.own, &mut names);
    }
    tell_warnings(&subject);
    let mut out = output(arguments.output.as_deref(), Existing::replaced_if(arguments.force), is_text)?;
    match (arguments.format, arguments.layout) {
        (Format::Json, _) => json::write_json(&mut out, &subject, &report)?,
        (Format::Csv, _) => csv::write_csv(&mut out, &subject, &report)?,
        (Format::Text, Layout::Xperf) => xperf::write_xperf(&mut out, &subject, &report, is_default)?,
        (Format::Text, Layout::Heapr) => {
            let options = TextOptions {
                width: line_width(),
                depth: arguments.depth.unwrap_or(if is_default { DEFAULT_DEPTH_SHOWN } else { usize::MAX }),
                least_permille: 5,
                style: if arguments.output.is_none() { Style::of_stdout() } else { Style::default() },
            };
            if is_default && subject.filters.is_empty() {
                write_findings(&mut out, &trace, (&subject, &report), &mut names, options.style)?;
            }
            text::write_text(&mut out, &subject, &report, options)?;
        }
    }
    out.end()?;
    Ok(ExitCode::SUCCESS)
}

/// Writes what stands out above a report of all of a recording.
fn write_findings(
    out: &mut dyn Write,
    trace: &Trace,
    (subject, report): (&Subject, &Report),
    names: &mut TraceNames,
    style: Style,
) -> std::io::Result<()> {
    let packages = heapr_symbols::Packages::default();
    let left_out = Suppressions::known();
    let judged = Judged { own: &subject.own, packages: &packages, left_out: &left_out, file: &subject.file };
    if let Ok(found) = heapr_findings::of_reported_recording(trace, judged, report.names(), names) {
        finding_text::write(out, &found.verdict, &found.findings, style, false)?;
        writeln!(out)?;
    }
    Ok(())
}

/// Runs `--free-stacks`.
fn free_stacks(arguments: &ReportArguments, file: &Path, trace: &Trace) -> anyhow::Result<ExitCode> {
    let filter = arguments.filters.filter(trace)?;
    anyhow::ensure!(
        arguments.actions.actions(Metric::default())?.is_empty()
            && filter.lifetime.is_none()
            && filter.at.is_none()
            && filter.allocation_type.is_none()
            && !filter.is_temporary_only,
        "--free-stacks goes with --pid, --heap, --thread, --size, --range and frames, not with other actions and filters"
    );
    let mut bar = ProgressBar::new("reading events");
    let found = heapr_query::free_sites(trace, &filter, &mut |read, all| bar.show(read, all))?;
    drop(bar);
    let mut names = TraceNames::new(trace, &arguments.names);
    let stacks = free_stacks::stacks(&found);
    let cull = arguments.filters.cull_list()?;
    let groups = StackGroups::new(trace, stacks, GroupBy::Stacks, &cull, &filter, &mut names);
    let report = FreeReport::new(&found, groups, top(arguments.top, arguments.format, false));
    let subject = Subject::new(file, trace, &found.damage, arguments.filters.counted());
    tell_warnings(&subject);
    let mut out = output(
        arguments.output.as_deref(),
        Existing::replaced_if(arguments.force),
        arguments.format == Format::Text,
    )?;
    match arguments.format {
        Format::Text => {
            let depth = arguments.depth.unwrap_or(DEFAULT_DEPTH_SHOWN);
            report.write_text(&mut out, &subject, (line_width(), depth))?;
        }
        Format::Json => writeln!(out, "{}", json_lines(&report.json(&subject)))?,
        Format::Csv => report.write_csv(&mut out)?,
    }
    out.end()?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses actions that xperf's layout does not have, such as trees and histograms: another table
/// in their place would be mistaken for them.
fn refuse_without_xperf(query: &Query) -> anyhow::Result<()> {
    let unknown = query.actions.iter().find_map(|action| match action {
        Action::Ranking { .. } => None,
        Action::Functions { by_line: false, .. } => Some("--functions"),
        Action::Functions { by_line: true, .. } => Some("--function-lines"),
        Action::TopDown { .. } => Some("--invert"),
        Action::Callers { .. } => Some("--callers"),
    });
    let unknown = unknown.or_else(|| (!query.histograms.is_empty()).then_some("--histogram"));
    match unknown {
        Some(option) => {
            anyhow::bail!("--layout xperf can't be combined with {option}: xperf's layout has none")
        }
        None => Ok(()),
    }
}

impl HistogramKind {
    fn of(self) -> HistogramOf {
        match self {
            Self::Size => HistogramOf::Size,
            Self::Lifetime => HistogramOf::Lifetime,
        }
    }
}
