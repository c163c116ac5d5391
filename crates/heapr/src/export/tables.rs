//! `heapr export --to parquet`: a recording as tables in a folder.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use heapr_export::Subject;
use heapr_export::tables::{Recording, Table, write_tables};
use heapr_trace::Trace;

use super::ExportArguments;
use super::labels::{Labels, host_name};
use crate::output::OutputFile;
use crate::report::names::TraceNames;
use crate::trace_file::tell_warnings;

/// What is to be known of the recording beside its file.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tables (--to parquet)")]
pub(crate) struct TableArguments {
    /// Name of the machine [default: this one's]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Name of the service [default: the program's]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// A label of the processes; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
    /// Length of an interval of the table of samples
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = heapr_filters::quantity::parse_duration_ns)]
    interval: u64,
}

/// Writes the tables into the folder `--output`.
pub(super) fn run(arguments: &ExportArguments, trace: &Trace) -> anyhow::Result<ExitCode> {
    let folder =
        arguments.output.as_deref().context("tables are many files: name a folder for them (-o DIR)")?;
    let host = arguments.tables.host.clone().unwrap_or_else(host_name);
    let labels = Labels::parse(&arguments.tables.label)?.json();
    let recording = Recording {
        host: &host,
        service: arguments.tables.service.as_deref(),
        labels: &labels,
        file: &arguments.file.file_name().unwrap_or_default().to_string_lossy(),
        interval_ns: arguments.tables.interval.max(1_000_000),
    };
    let mut files: Vec<OutputFile> = Vec::new();
    let name = file_name(trace, &host, &arguments.file);
    let mut new_file = |table: &Table| {
        let path = folder.join(table.name).join(format!("date={}", date(trace))).join(&name);
        let parent = path.parent().unwrap_or(folder);
        let made = std::fs::create_dir_all(parent)
            .with_context(|| format!("making the folder {}", parent.display()));
        let made = made.and_then(|()| OutputFile::create(&path, arguments.force));
        let file = made.map_err(|error| std::io::Error::other(format!("{error:#}")))?;
        let written = OpenOptions::new().write(true).open(file.partial_path())?;
        files.push(file);
        Ok(Box::new(BufWriter::with_capacity(1 << 18, written)) as Box<dyn Write>)
    };
    let mut names = TraceNames::new(trace, &arguments.names);
    let damage = write_tables(trace, &recording, &mut names, &mut new_file)?;
    for file in files {
        file.keep()?;
    }
    tell_warnings(&Subject::new(&arguments.file, trace, &damage, String::new()));
    Ok(ExitCode::SUCCESS)
}

/// The day on which the recording began.
fn date(trace: &Trace) -> String {
    let start = jiff::Timestamp::from_nanosecond(i128::from(trace.session().start_unix_ns));
    start.unwrap_or_default().to_string().chars().take(10).collect()
}

/// One name for a recording, wherever it is exported from.
fn file_name(trace: &Trace, host: &str, file: &Path) -> PathBuf {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '_' }).collect()
    };
    let pid = trace.processes().first().map_or(0, |process| process.pid);
    match trace.session().start_unix_ns {
        // Other tools do not tell when they recorded.
        0 => {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("{}-{pid}-{}.parquet", plain(host), plain(&name)).into()
        }
        start => format!("{}-{pid}-{start}.parquet", plain(host)).into(),
    }
}
