//! `heapr export`: a trace, or a profile of Node's heap, in another tool's format.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use heapr_query::{Action, Answer, GroupBy, Metric, Query};

use crate::commands::report::{open, output, refuse_inputs, subject_of_report};
use crate::export::{Sample, SampleFrame, collapsed, flamegraph, pprof, speedscope};
use crate::report::action_arguments::sort_key;
use crate::report::filter_arguments::FilterArguments;
use crate::report::names::{NameArguments, TraceNames};
use crate::snapshot::allocations;

/// Arguments of `heapr export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArguments {
    /// The trace; also a sampling profile or an allocation timeline of Node
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format
    #[arg(long, value_enum)]
    to: Target,
    /// What is shown
    #[arg(long, value_name = "KEY", default_value = Metric::default().key(), ignore_case = true, value_parser = sort_key())]
    value: Metric,
    #[command(flatten)]
    filters: FilterArguments,
    #[command(flatten)]
    names: NameArguments,
    /// Write to a file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// A line for each stack, as flame graph scripts read it
    Collapsed,
    /// pprof's gzipped protocol buffer, with all values
    Pprof,
    /// The file format of speedscope.app
    Speedscope,
    /// A self-contained SVG
    Flamegraph,
}

/// Runs the command.
pub(crate) fn run(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    let sort = arguments.value;
    refuse_inputs(arguments.output.as_deref(), &arguments.file, &arguments.filters)?;
    if allocations::is_v8_file(&arguments.file) {
        let samples = allocations::samples(&arguments.file)?;
        return write(&arguments, &samples, (0, 0), sort);
    }
    let trace = open(&arguments.file)?;
    let query = Query {
        filter: arguments.filters.filter(&trace)?,
        cull: arguments.filters.cull_list()?,
        actions: vec![Action::Ranking { by: GroupBy::Stacks, sort }],
        top: usize::MAX,
        tells_lines: matches!(arguments.to, Target::Pprof | Target::Speedscope),
        ..Query::default()
    };
    let mut names = TraceNames::new(&trace, &arguments.names);
    let report = heapr_query::run(&trace, &query, &mut names)?;
    // None of the formats has a place for what is wrong with the recording.
    subject_of_report(&arguments.file, &trace, &report, String::new()).tell_warnings();
    let mut samples = Vec::new();
    for section in &report.sections {
        let Answer::Ranking(ranking) = &section.answer else { continue };
        for group in &ranking.groups {
            let frames = report.frames(group).iter().map(SampleFrame::new).collect();
            samples.push(Sample { frames, amounts: group.amounts });
        }
    }
    write(&arguments, &samples, (trace.session().start_unix_ns, trace.duration_ns()), sort)
}

/// Writes the stacks; `times` are start and duration in ns.
fn write(
    arguments: &ExportArguments,
    samples: &[Sample],
    times: (u64, u64),
    sort: Metric,
) -> anyhow::Result<ExitCode> {
    if matches!(arguments.to, Target::Pprof) && pprof::is_too_large(samples) {
        tell!(
            "heapr: {}: amounts above 2^63 - 1 are written as that: pprof has no larger ones",
            arguments.file.display()
        );
    }
    let mut out = output(arguments.output.as_deref(), false)?;
    let title = format!("{} ({})", arguments.file.display(), sort.key());
    match arguments.to {
        Target::Collapsed => collapsed::write(&mut out, samples, sort)?,
        Target::Pprof => pprof::write(&mut out, samples, times.0, times.1, sort)?,
        Target::Speedscope => speedscope::write(&mut out, samples, sort, &title)?,
        Target::Flamegraph => flamegraph::write(&mut out, samples, sort, &title)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
