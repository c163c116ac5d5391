//! `heapr snapshot take`: a snapshot of each process that is named.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use serde_json::json;

use super::capture::{CaptureArguments, Captured, capture, close, open};
use super::file_name::Destination;
use super::interrupt;

/// Arguments of `heapr snapshot take`.
#[derive(Debug, clap::Args)]
pub(crate) struct TakeArguments {
    /// Processes
    #[arg(value_name = "PID", required = true)]
    pids: Vec<u32>,
    /// Write to this file, or into this directory under names like Heap.DATE.TIME.PID.THREAD.NUMBER.heapsnapshot
    #[arg(short, long, value_name = "FILE|DIRECTORY")]
    output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(short = 'f', long)]
    overwrite: bool,
    #[command(flatten)]
    capture: CaptureArguments,
    /// Format of what is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// The names of the files
    Text,
    /// Names, sizes, pauses and memory, for programs
    Json,
}

/// Runs the command.
pub(crate) fn run(arguments: TakeArguments) -> anyhow::Result<ExitCode> {
    let is_cancelled = interrupt::watch()?;
    let is_for_one = arguments.pids.len() == 1 && !arguments.capture.has_workers();
    let destination = Destination::new(arguments.output.as_deref(), arguments.overwrite, is_for_one)?;
    let mut captured = Vec::new();
    let mut status = ExitCode::SUCCESS;
    for &pid in &arguments.pids {
        let before = captured.len();
        let outcome = take(pid, &arguments.capture, &destination, &is_cancelled, &mut captured);
        if arguments.format == Format::Text {
            for captured in &captured[before..] {
                println!("{}", captured.path.display());
            }
        }
        if let Err(error) = outcome {
            // The other processes are no worse for it.
            eprintln!("heapr: {error:#}");
            status = ExitCode::from(2);
        }
        if is_cancelled.load(std::sync::atomic::Ordering::Relaxed) {
            break;
        }
    }
    if arguments.format == Format::Json {
        let snapshots: Vec<_> = captured.iter().map(Captured::json).collect();
        println!("{:#}", json!({ "schema": "heapr-snapshot-take-1", "snapshots": snapshots }));
    }
    Ok(status)
}

fn take(
    pid: u32,
    arguments: &CaptureArguments,
    destination: &Destination,
    is_cancelled: &AtomicBool,
    captured: &mut Vec<Captured>,
) -> anyhow::Result<()> {
    let mut inspector = open(pid, arguments.open(), is_cancelled)?;
    let outcome = capture(&mut inspector, arguments, destination, is_cancelled, captured);
    outcome.and(close(inspector))
}
