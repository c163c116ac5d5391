//! `heapr snapshot every` of processes with a native heap: the session that records them takes them from now on.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use heapr_session::Request;

use super::watchers;
use crate::processes;
use crate::report::quantity::duration;
use crate::snapshot_take::parse_interval;

/// Arguments of `heapr snapshot every` for native heaps.
#[derive(Debug, clap::Args)]
pub(crate) struct EveryArguments {
    /// Seconds (or `5m`, `1h`) between two snapshots, then the processes; with --off only processes, or none for all
    #[arg(value_name = "SECONDS PID|NAME…")]
    words: Vec<String>,
    /// The processes that these have started, too
    #[arg(long)]
    tree: bool,
    /// Of the native heap, also where a process runs JavaScript
    #[arg(long)]
    native: bool,
    /// Take no more
    #[arg(long)]
    off: bool,
    /// File for processes that no session records yet [default: heapr.PID.heapr, or heapr.PID.2.heapr and so on]
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
        return off(&processes::named_with_children(&arguments.words, arguments.tree)?);
    }
    let Some((interval, names)) = arguments.words.split_first() else {
        bail!("no interval given: heapr snapshot every SECONDS PID…")
    };
    ensure!(!names.is_empty(), "no process given: heapr snapshot every {interval} PID…");
    let interval = parse_interval(interval)?;
    let interval_ms = interval.as_millis() as u64;
    let shown = duration(interval.as_nanos() as u64);
    let pids = processes::named_with_children(names, arguments.tree)?;
    let (watched, unwatched) = watchers::find(&pids);
    if let Some(remark) = processes::children_left_out(&pids).filter(|_| !arguments.quiet) {
        tell!("heapr: {remark}");
    }
    if let Some(output) = arguments.output.as_ref().filter(|_| !watched.is_empty() && !arguments.quiet) {
        watchers::tell_unused(output, &watched);
    }
    for watcher in watched {
        let request = Request::SnapshotEvery { interval_ms: Some(interval_ms), pids: watcher.pids.clone() };
        watcher.client.ask(request)?;
        if !arguments.quiet {
            say!("session {} takes one of {} every {shown}", watcher.client.name(), words(&watcher.pids));
        }
    }
    if unwatched.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let output = watchers::output(arguments.output.as_deref(), &unwatched, arguments.force);
    let mut more = vec!["--snapshot-every".to_owned(), format!("{interval_ms}ms")];
    more.extend(arguments.force.then(|| "--force".to_owned()));
    let client = watchers::start(&unwatched, &output, &more)?;
    if arguments.quiet {
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "session {} takes one of {} every {shown} into {}; `heapr stop {}` ends it",
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
