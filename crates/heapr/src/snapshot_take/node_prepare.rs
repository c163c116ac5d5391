//! `heapr node prepare`: makes a running Node ready for snapshots by a signal.

use std::process::ExitCode;

use heapr_inspector::SnapshotSignal;

use super::capture::{OpenArguments, close, open};
use super::node_run::parse_signal;
use super::{interrupt, ready_processes};

/// Arguments of `heapr node prepare`.
#[derive(Debug, clap::Args)]
pub(crate) struct PrepareArguments {
    /// The process
    #[arg(value_name = "PID")]
    pid: u32,
    /// Write a snapshot on this signal: SIGUSR2 or SIGUSR1
    #[arg(long, value_name = "SIGNAL", default_value = "SIGUSR2", value_parser = parse_signal)]
    signal: SnapshotSignal,
    #[command(flatten)]
    open: OpenArguments,
}

/// Runs the command.
pub(crate) fn run(arguments: PrepareArguments) -> anyhow::Result<ExitCode> {
    let is_cancelled = interrupt::watch()?;
    let pid = arguments.pid;
    let mut inspector = open(pid, &arguments.open, &is_cancelled)?;
    let prepared = inspector.prepare(arguments.signal, &is_cancelled);
    let process = inspector.process().clone();
    let closed = close(inspector);
    let directory = prepared?;
    ready_processes::remember(&process, arguments.signal, &directory)?;
    if !arguments.open.is_quiet() {
        tell!(
            "heapr: from now on `heapr snapshot take {pid}` has the process write snapshots by itself, without a port, and \
             objects keep their ids from one to the next"
        );
    }
    closed.map(|()| ExitCode::SUCCESS)
}
