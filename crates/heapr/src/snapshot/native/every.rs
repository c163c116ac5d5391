//! `heapr snapshot every` of processes with a native heap: tells the session that records them to
//! take snapshots from here on.

use std::process::ExitCode;

use anyhow::bail;
use heapr_session::Request;

use super::watchers;
use crate::graph_contents::{Contents, contents};
use crate::processes;
use crate::snapshot_take::EveryQuestion;
use heapr_table::quantity::duration;

/// Options for snapshots of native heaps only.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct NativeEveryOptions {
    /// Take the native heap, also of a process that runs JavaScript
    #[arg(long)]
    native: bool,
    /// With the references between the blocks: the processes stand still meanwhile
    #[arg(long, conflicts_with = "off")]
    graph: bool,
    /// With so much of the contents of blocks
    #[arg(long, value_enum, value_name = "WHAT", requires = "graph")]
    contents: Option<Contents>,
    /// Take no more
    #[arg(long)]
    off: bool,
}

/// Runs the command.
pub(crate) fn every(
    asked: &EveryQuestion,
    options: &NativeEveryOptions,
    is_quiet: bool,
) -> anyhow::Result<ExitCode> {
    if options.off {
        return off(&processes::named_with_children(&asked.words, asked.tree)?);
    }
    let (interval, names) = asked.interval_and_names()?;
    let interval_ms = interval.as_millis() as u64;
    let shown = duration(interval.as_nanos() as u64);
    let pids = processes::named_with_children(names, asked.tree)?;
    let (watched, unwatched) = watchers::find(&pids);
    if let Some(remark) = processes::children_left_out(&pids).filter(|_| !is_quiet) {
        tell!("heapr: {remark}");
    }
    if let Some(output) = asked.output.as_ref().filter(|_| !watched.is_empty() && !is_quiet) {
        watchers::tell_unused(output, &watched);
    }
    for watcher in watched {
        let request = Request::SnapshotEvery {
            interval_ms: Some(interval_ms),
            pids: watcher.pids.clone(),
            graph: options.graph.then(|| contents(options.contents)),
        };
        watcher.client.ask(request)?;
        if !is_quiet {
            say!("session {} takes one of {} every {shown}", watcher.client.name(), words(&watcher.pids));
        }
    }
    if unwatched.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let output = watchers::output(asked.output.as_deref(), &unwatched, asked.force)?;
    let mut more = vec!["--snapshot-every".to_owned(), format!("{interval_ms}ms")];
    more.extend(asked.force.then(|| "--force".to_owned()));
    more.extend(options.graph.then(|| "--graph".to_owned()));
    more.extend(options.contents.map(|Contents::Strings| "--contents=strings".to_owned()));
    let client = watchers::start(&unwatched, &output, &more)?;
    if is_quiet {
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
            client.ask(Request::SnapshotEvery { interval_ms: None, pids: Vec::new(), graph: None })?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (watched, unwatched) = watchers::find(pids);
    for watcher in watched {
        watcher.client.ask(Request::SnapshotEvery { interval_ms: None, pids: watcher.pids, graph: None })?;
    }
    if !unwatched.is_empty() {
        bail!("no session records {}", words(&unwatched));
    }
    Ok(ExitCode::SUCCESS)
}

fn words(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
