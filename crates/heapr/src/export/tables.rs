//! `heapr export --to parquet`: a recording as tables in a folder.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use heapr_export::Subject;
use heapr_export::tables::{Recording, Table, write_tables};
use heapr_query::RecordedSpan;
use heapr_trace::Trace;
use sha2::{Digest as _, Sha256};

use super::ExportArguments;
use super::labels::{Labels, host_name};
use crate::output::OutputFile;
use crate::report::names::TraceNames;
use crate::trace_file::tell_warnings;
use crate::transfer::ObjectStore;

/// Facts about the recording that its file does not have.
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
    /// Certificates to trust for an object store, in place of the machine's own
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
}

/// Writes the tables into the folder `--output`, on this machine or in an object store.
pub(super) fn run(arguments: &ExportArguments, trace: &Trace) -> anyhow::Result<ExitCode> {
    let output = arguments
        .output
        .as_deref()
        .filter(|folder| *folder != Path::new("-"))
        .context("tables are many files: name a folder for them (-o DIR, -o s3://BUCKET/DIR)")?;
    let _busy = crate::busy_line::begin("writing tables");
    let variable = |name: &str| std::env::var(name).ok();
    let store = ObjectStore::of(&output.to_string_lossy(), arguments.tables.ca.clone(), &variable)?;
    let Some(store) = store else {
        write_into(output, arguments, trace)?;
        return Ok(ExitCode::SUCCESS);
    };
    let here =
        tempfile::Builder::new().prefix("heapr-tables-").tempdir().context("no folder for the tables")?;
    for path in write_into(here.path(), arguments, trace)? {
        let name = path.strip_prefix(here.path()).unwrap_or(&path).to_string_lossy().into_owned();
        store.put(&name, &path, &sha256(&path)?, arguments.force)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// SHA-256 of a file, in hexadecimal.
fn sha256(path: &Path) -> anyhow::Result<String> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes the tables into a folder, and returns their paths.
fn write_into(folder: &Path, arguments: &ExportArguments, trace: &Trace) -> anyhow::Result<Vec<PathBuf>> {
    let host = arguments.tables.host.clone().unwrap_or_else(host_name);
    let labels = Labels::parse(&arguments.tables.label)?.json();
    let recording = Recording {
        host: &host,
        service: arguments.tables.service.as_deref(),
        labels: &labels,
        file: &arguments.file().file_name().unwrap_or_default().to_string_lossy(),
        interval_ns: arguments.tables.interval.max(1_000_000),
    };
    let mut files: Vec<OutputFile> = Vec::new();
    let name = file_name(trace, &host, arguments.file());
    let mut new_file = |table: &Table| {
        let path = folder.join(table.name).join(format!("date={}", date(trace))).join(&name);
        let parent = path.parent().unwrap_or(folder);
        let made = std::fs::create_dir_all(parent)
            .with_context(|| format!("making the folder {}", parent.display()));
        let made = made.and_then(|()| OutputFile::create(&path, arguments.force));
        let file = made.map_err(|error| std::io::Error::other(format!("{error:#}")))?;
        let written = file.try_clone().map_err(|error| std::io::Error::other(format!("{error:#}")))?;
        files.push(file);
        Ok(Box::new(BufWriter::with_capacity(1 << 18, written)) as Box<dyn Write>)
    };
    let mut names = TraceNames::new(trace, &arguments.names);
    let damage = write_tables(trace, &recording, &mut names, &mut new_file)?;
    let kept = files.into_iter().map(OutputFile::keep).collect::<anyhow::Result<_>>()?;
    tell_warnings(&Subject::new(arguments.file(), trace, &damage, String::new()));
    Ok(kept)
}

/// Day on which the recording began, or this file of a session with files in turn.
fn date(trace: &Trace) -> String {
    let begin_ns = RecordedSpan::of(trace).goes_on_at_ns().unwrap_or(0);
    let begin_ns = trace.session().start_unix_ns.saturating_add(begin_ns);
    let start = jiff::Timestamp::from_nanosecond(i128::from(begin_ns));
    start.unwrap_or_default().to_string().chars().take(10).collect()
}

/// Returns one file name for a recording, wherever it is exported from.
fn file_name(trace: &Trace, host: &str, file: &Path) -> PathBuf {
    let plain = |text: &str| -> String {
        text.chars().map(|c| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '_' }).collect()
    };
    let pid = trace.processes().first().map_or(0, |process| process.pid);
    match trace.session().start_unix_ns {
        // Other tools do not record the time.
        0 => {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            format!("{}-{pid}-{}.parquet", plain(host), plain(&name)).into()
        }
        // Each file of a session has tables of its own.
        start => {
            let begin = start.saturating_add(RecordedSpan::of(trace).goes_on_at_ns().unwrap_or(0));
            format!("{}-{pid}-{begin}.parquet", plain(host)).into()
        }
    }
}
