//! `heapr export`: a trace, or a profile of Node's heap, in another tool's format.

pub(crate) mod labels;
mod tables;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use heapr_export::{FORMATS, Format, Profile, Samples, Subject, is_too_large_for_pprof};
use heapr_query::Metric;
use heapr_trace::{Amounts, Trace};

use crate::busy_line;
use crate::output::{output, refuse_binary_on_terminal, refuse_inputs};
use crate::report::action_arguments::sort_key;
use crate::report::names::{NameArguments, TraceNames};
use crate::report::progress_bar::ProgressBar;
use crate::snapshot::v8::allocations;
use crate::trace_file::{named_or_newest, open, tell_warnings};
use heapr_files::Existing;
use heapr_filters::FilterArguments;

/// Arguments of `heapr export`.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportArguments {
    /// The trace; also an allocation timeline of Node, or what another tool recorded (heaptrack,
    /// massif, DHAT, jemalloc, pprof) [default: the newest trace in this folder]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Format
    #[arg(long, value_name = "FORMAT", value_parser = target())]
    to: Target,
    /// Metric that is shown
    #[arg(long, value_name = "KEY", default_value = Metric::default().key(), ignore_case = true, value_parser = sort_key())]
    value: Metric,
    #[command(flatten)]
    filters: FilterArguments,
    #[command(flatten)]
    names: NameArguments,
    #[command(flatten)]
    tables: tables::TableArguments,
    /// Write to a file, or tables into a folder [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
}

impl ExportArguments {
    fn file(&self) -> &Path {
        self.file.as_deref().unwrap_or(Path::new(""))
    }
}

/// Form of the output.
#[derive(Debug, Clone, Copy)]
enum Target {
    /// One file in another tool's format.
    Format(Format),
    /// Folder of tables.
    Tables,
}

/// Name of the tables in `--to`.
const TABLES: &str = "parquet";

fn target() -> impl TypedValueParser<Value = Target> {
    let formats = FORMATS.map(|format| PossibleValue::new(format.name).help(format.help));
    let tables =
        PossibleValue::new(TABLES).help("Tables in a folder, for DuckDB, ClickHouse, Spark and the like");
    let values = formats.into_iter().chain([tables]);
    PossibleValuesParser::new(values).try_map(|name| match name.as_str() {
        TABLES => Ok(Target::Tables),
        name => Format::of_name(name).map(Target::Format).ok_or("it is no format"),
    })
}

/// Runs the command.
pub(crate) fn run(mut arguments: ExportArguments) -> anyhow::Result<ExitCode> {
    arguments.file = Some(named_or_newest(arguments.file.take(), "export")?);
    let sort = arguments.value;
    refuse_inputs(arguments.output.as_deref(), arguments.file(), &arguments.filters)?;
    let format = match arguments.to {
        Target::Format(format) => format,
        Target::Tables => {
            anyhow::ensure!(
                arguments.filters.counted().is_empty(),
                "tables hold all of a recording: leave out {}, and choose by SQL",
                arguments.filters.counted()
            );
            return tables::run(&arguments, &arguments.filters.shown(open(arguments.file())?));
        }
    };
    if format.is_binary() {
        refuse_binary_on_terminal(arguments.output.as_deref(), format.name)?;
    }
    let busy = busy_line::begin(format!("reading {}", arguments.file().display()));
    if allocations::is_v8_file(arguments.file()) {
        let samples = allocations::samples(arguments.file())?;
        return write(&arguments, format, &samples, None, sort);
    }
    let trace = arguments.filters.shown(open(arguments.file())?);
    let query = format.query(arguments.filters.filter(&trace)?, arguments.filters.cull_list()?, sort);
    let mut names = TraceNames::new(&trace, &arguments.names);
    let mut bar = ProgressBar::new("reading events");
    let report =
        heapr_query::run_with_progress(&trace, &query, &mut names, &mut |read, all| bar.show(read, all))?;
    drop(bar);
    let untold = trace.sampling().untold().marked(&Amounts::default());
    anyhow::ensure!(
        !sort.is_unknown(&untold),
        "{} does not tell the {}: choose another with --value",
        arguments.file().display(),
        sort.words()
    );
    // No format has a field for what is wrong with the recording.
    tell_warnings(&Subject::new(arguments.file(), &trace, &report.damage, String::new()));
    let mut bar = ProgressBar::new("naming stacks");
    let samples = Samples::of_report(&report, &mut |done, all| bar.show(done, all));
    // The stacks hold the report's rows by now.
    drop((report, bar));
    busy.say("writing");
    write(&arguments, format, &samples, Some(&trace), sort)
}

/// Writes the stacks of a trace or of a V8 profile.
fn write(
    arguments: &ExportArguments,
    format: Format,
    samples: &Samples,
    trace: Option<&Trace>,
    sort: Metric,
) -> anyhow::Result<ExitCode> {
    if format.name == "pprof" && is_too_large_for_pprof(samples) {
        warn!(
            "{}: amounts above 2^63 - 1 are written as that: pprof has no larger ones",
            arguments.file().display()
        );
    }
    let mut out = output(arguments.output.as_deref(), Existing::replaced_if(arguments.force), false)?;
    let title = format!("{} ({})", arguments.file().display(), sort.key());
    let profile = Profile { tells_intervals: true, ..Profile::new(samples, sort, &title) };
    let profile = match trace {
        Some(trace) => profile.of_trace(trace),
        None => profile,
    };
    (format.write)(&mut out, &profile)?;
    out.end()?;
    Ok(ExitCode::SUCCESS)
}
