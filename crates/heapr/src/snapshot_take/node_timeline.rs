//! `heapr node timeline`: records all allocations of a while with their stacks, and what is left of
//! them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::capture::{CaptureArguments, close, open};
use super::file_name::{Destination, FileCount};
use super::preflight::Consent;
use super::{interrupt, preflight};
use crate::output::OutputFile;
use heapr_table::quantity;

/// Arguments of `heapr node timeline`.
#[derive(Debug, clap::Args)]
pub(crate) struct TimelineArguments {
    /// The process
    #[arg(value_name = "PID")]
    pid: u32,
    /// Record for so long; Ctrl-C ends sooner, and keeps what there is
    #[arg(short, long, value_name = "SECONDS", default_value = "30", value_parser = heapr_filters::quantity::parse_seconds)]
    duration: Duration,
    /// Write to this file, or into this directory under a name like
    /// Heap.DATE.TIME.PID.THREAD.NUMBER.heaptimeline
    #[arg(short, long, value_name = "FILE|DIRECTORY", value_parser = crate::output::file_path())]
    output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(short = 'f', long)]
    force: bool,
    #[command(flatten)]
    capture: CaptureArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: TimelineArguments) -> anyhow::Result<ExitCode> {
    let is_cancelled = interrupt::watch()?;
    let destination = Destination::new(arguments.output.as_deref(), arguments.force, FileCount::One)?;
    let pid = arguments.pid;
    let is_quiet = arguments.capture.open().is_quiet();
    let mut inspector = open(pid, arguments.capture.open(), &is_cancelled)?;
    let outcome = (|| {
        let usage = inspector.heap_usage(None, &is_cancelled)?;
        // A timeline ends with a snapshot, which costs as much as any other one.
        let what = format!("process {pid}");
        preflight::check(
            pid,
            &what,
            arguments.capture.facts(&inspector, usage),
            &[destination.directory()],
            Consent { may_risk: arguments.capture.may_risk(), is_quiet },
        )?;
        let (path, may_replace) = destination.path("Heap", pid, 0, "heaptimeline");
        let mut file = OutputFile::create(&path, may_replace)?;
        let until = Instant::now() + arguments.duration;
        let options = arguments.capture.snapshot_options();
        let taken = inspector.record_timeline(None, options, until, &mut file, &mut |_| {}, &is_cancelled)?;
        let path = file.keep()?;
        say!("{}", path.display());
        if !is_quiet {
            tell!(
                "heapr: {}; while it was written the thread stood still for {}",
                quantity::bytes(taken.bytes),
                preflight::seconds(taken.pause)
            );
        }
        Ok(ExitCode::SUCCESS)
    })();
    let closed = close(inspector);
    outcome.and_then(|status| closed.map(|()| status))
}
