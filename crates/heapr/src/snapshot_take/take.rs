//! `heapr snapshot take`: one snapshot of each process that is named.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use heapr_v8::capture::{Closing, Inspector, OpenOptions, Process, SnapshotOptions};

use super::output_file::OutputFile;
use crate::report::quantity;

/// Arguments of `heapr snapshot take`.
#[derive(Debug, clap::Args)]
pub(crate) struct TakeArguments {
    /// Processes
    #[arg(value_name = "PID", required = true)]
    pids: Vec<u32>,
    /// Write to this file; else Heap.DATE.TIME.PID.THREAD.NUMBER.heapsnapshot in the working directory
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(arguments: TakeArguments) -> anyhow::Result<ExitCode> {
    let is_cancelled = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&is_cancelled)).context("cannot watch for signals")?;
    }
    for &pid in &arguments.pids {
        let process = Process::examine(pid)?;
        let mut inspector = Inspector::open(&process, &OpenOptions::default(), &is_cancelled)?;
        let usage = inspector.heap_usage(&is_cancelled)?;
        eprintln!("heapr: process {pid}: {} of heap in use", quantity::bytes(usage.used_bytes));
        let path =
            arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("Heap.{pid}.heapsnapshot")));
        let mut file = OutputFile::create(&path, false)?;
        let taken =
            inspector.take_snapshot(SnapshotOptions::default(), &mut file, &mut |_| {}, &is_cancelled);
        let closing = inspector.close();
        let taken = taken?;
        file.keep()?;
        println!("{}", path.display());
        eprintln!("{taken:?} {closing:?}");
        if let Closing::StillOpen(address) = closing {
            eprintln!("heapr: process {pid} still listens on {address}");
        }
    }
    Ok(ExitCode::SUCCESS)
}
