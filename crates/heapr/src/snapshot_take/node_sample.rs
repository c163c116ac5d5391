//! `heapr node sample`: runs V8's sampling heap profiler for a while.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use heapr_inspector::SamplingOptions;

use super::capture::{OpenArguments, close, open};
use super::file_name::{Destination, FileCount};
use super::interrupt;
use crate::output::OutputFile;

/// Arguments of `heapr node sample`.
#[derive(Debug, clap::Args)]
pub(crate) struct SampleArguments {
    /// The process
    #[arg(value_name = "PID")]
    pid: u32,
    /// Sample for so long; Ctrl-C ends sooner, and keeps what there is
    #[arg(short, long, value_name = "SECONDS", default_value = "30", value_parser = heapr_filters::quantity::parse_seconds)]
    duration: Duration,
    /// One sample for so many bytes, on average
    #[arg(long, value_name = "SIZE", value_parser = heapr_filters::quantity::parse_bytes, default_value = "32K")]
    interval: u64,
    /// Frames of each stack
    #[arg(long, value_name = "NUMBER", default_value_t = 128)]
    depth: u32,
    /// Also what is collected meanwhile: all that is allocated, not only what stays
    #[arg(long)]
    all: bool,
    /// Write to this file, or into this directory under a name like
    /// Heap.DATE.TIME.PID.THREAD.NUMBER.heapprofile
    #[arg(short, long, value_name = "FILE|DIRECTORY", value_parser = crate::output::file_path())]
    output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(short = 'f', long)]
    force: bool,
    #[command(flatten)]
    open: OpenArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: SampleArguments) -> anyhow::Result<ExitCode> {
    let is_cancelled = interrupt::watch()?;
    let destination = Destination::new(arguments.output.as_deref(), arguments.force, FileCount::One)?;
    let mut inspector = open(arguments.pid, &arguments.open, &is_cancelled)?;
    let outcome = (|| {
        let (path, may_replace) = destination.path("Heap", arguments.pid, 0, "heapprofile");
        let mut file = OutputFile::create(&path, may_replace)?;
        let options = SamplingOptions {
            interval_bytes: arguments.interval,
            depth_max: arguments.depth,
            has_collected: arguments.all,
        };
        let until = Instant::now() + arguments.duration;
        let profile = inspector.sample(None, options, until, &is_cancelled)?;
        file.write_all(&profile)?;
        say!("{}", file.keep()?.display());
        Ok(ExitCode::SUCCESS)
    })();
    let closed = close(inspector);
    outcome.and_then(|status| closed.map(|()| status))
}
