//! `heapr export`: a trace, or a profile of Node's heap, in another tool's format.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use heapr_export::{FORMATS, Format, Profile, Sample, Subject, is_too_large_for_pprof, samples};
use heapr_query::Metric;

use crate::output::{output, refuse_inputs};
use crate::report::action_arguments::sort_key;
use crate::report::names::{NameArguments, TraceNames};
use crate::shown_frames::ShownFrames;
use crate::snapshot::v8::allocations;
use crate::trace_file::tell_warnings;
use heapr_filters::FilterArguments;

/// Arguments of `heapr export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArguments {
    /// The trace; also an allocation timeline of Node, or what another tool recorded (heaptrack,
    /// massif, DHAT, jemalloc, pprof)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    to: Format,
    /// What is shown
    #[arg(long, value_name = "KEY", default_value = Metric::default().key(), ignore_case = true, value_parser = sort_key())]
    value: Metric,
    #[command(flatten)]
    filters: FilterArguments,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    shown: ShownFrames,
    /// Write to a file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
}

fn format() -> impl TypedValueParser<Value = Format> {
    let values = FORMATS.map(|format| PossibleValue::new(format.name).help(format.help));
    PossibleValuesParser::new(values).try_map(|name| Format::of_name(&name).ok_or("it is no format"))
}

/// Runs the command.
pub(crate) fn run(arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    let sort = arguments.value;
    refuse_inputs(arguments.output.as_deref(), &arguments.file, &arguments.filters)?;
    if allocations::is_v8_file(&arguments.file) {
        let samples = allocations::samples(&arguments.file)?;
        return write(&arguments, &samples, (0, 0), sort);
    }
    let trace = arguments.shown.open(&arguments.file)?;
    let query = arguments.to.query(arguments.filters.filter(&trace)?, arguments.filters.cull_list()?, sort);
    let mut names = TraceNames::new(&trace, &arguments.names);
    let report = heapr_query::run(&trace, &query, &mut names)?;
    // None of the formats has a place for what is wrong with the recording.
    tell_warnings(&Subject::new(&arguments.file, &trace, &report.damage, String::new()));
    let samples = samples(&report);
    write(&arguments, &samples, (trace.session().start_unix_ns, trace.duration_ns()), sort)
}

/// Writes the stacks; `times` are start and duration in ns.
fn write(
    arguments: &ExportArguments,
    samples: &[Sample],
    times: (u64, u64),
    sort: Metric,
) -> anyhow::Result<ExitCode> {
    if arguments.to.name == "pprof" && is_too_large_for_pprof(samples) {
        warn!(
            "{}: amounts above 2^63 - 1 are written as that: pprof has no larger ones",
            arguments.file.display()
        );
    }
    let mut out = output(arguments.output.as_deref(), arguments.force, false)?;
    let title = format!("{} ({})", arguments.file.display(), sort.key());
    let (start_unix_ns, duration_ns) = times;
    (arguments.to.write)(
        &mut out,
        &Profile { samples, value: sort, title: &title, start_unix_ns, duration_ns },
    )?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
