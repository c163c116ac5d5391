//! `heapr snapshot every` of processes with a native heap: the session that records them takes them from now on.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use heapr_session::Request;

use super::watchers;

/// Arguments of `heapr snapshot every` for native heaps.
#[derive(Debug, clap::Args)]
pub(crate) struct EveryArguments {
    /// Seconds between two snapshots, then the processes; with --off only processes, or none for all
    #[arg(value_name = "SECONDS PID…")]
    numbers: Vec<u32>,
    /// Of the native heap, also where a process runs JavaScript
    #[arg(long)]
    native: bool,
    /// Take no more
    #[arg(long)]
    off: bool,
    /// File for processes that no session records yet [default: heapr.PID.heapr]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &EveryArguments) -> anyhow::Result<ExitCode> {
    if arguments.off {
        return off(&arguments.numbers);
    }
    let Some((&seconds, pids)) = arguments.numbers.split_first() else {
        bail!("no interval given: heapr snapshot every SECONDS PID…")
    };
    ensure!(seconds >= 1, "an interval is at least one second");
    ensure!(!pids.is_empty(), "no process given: heapr snapshot every {seconds} PID…");
    let interval_ms = u64::from(seconds) * 1000;
    let (watched, unwatched) = watchers::find(pids);
    for watcher in watched {
        let request = Request::SnapshotEvery { interval_ms: Some(interval_ms), pids: watcher.pids.clone() };
        watcher.client.ask(request)?;
        if !arguments.quiet {
            println!(
                "session {} takes one of {} every {seconds} s",
                watcher.client.name(),
                words(&watcher.pids)
            );
        }
    }
    let Some(first) = unwatched.first() else { return Ok(ExitCode::SUCCESS) };
    let output = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("heapr.{first}.heapr")));
    let mut more = vec!["--snapshot-every".to_owned(), seconds.to_string()];
    more.extend(arguments.force.then(|| "--force".to_owned()));
    let client = watchers::start(&unwatched, &output, &more)?;
    if arguments.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    println!(
        "session {} takes one of {} every {seconds} s into {}; `heapr stop {}` ends it",
        client.name(),
        words(&unwatched),
        output.display(),
        client.name()
    );
    Ok(ExitCode::SUCCESS)
}

fn off(pids: &[u32]) -> anyhow::Result<ExitCode> {
    if pids.is_empty() {
        for client in watchers::all() {
            client.ask(Request::SnapshotEvery { interval_ms: None, pids: Vec::new() })?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (watched, unwatched) = watchers::find(pids);
    for watcher in watched {
        watcher.client.ask(Request::SnapshotEvery { interval_ms: None, pids: watcher.pids })?;
    }
    if !unwatched.is_empty() {
        bail!("no session records {}", words(&unwatched));
    }
    Ok(ExitCode::SUCCESS)
}

fn words(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
