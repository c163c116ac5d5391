//! `heapr snapshot take` of processes with a native heap: asks the session that records them, or attaches for the snapshot.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use heapr_session::{
    Answer, Failure, HeapTrace, LoggingMode, Request, SessionProperties, SnapshotTaken, StartRequest,
};
use serde_json::{Value, json};

use super::watchers;
use crate::commands::report::Format;
use crate::processes;
use crate::report::quantity::{bytes, duration, plural};
use crate::sessions::advice;

/// Arguments of `heapr snapshot take` for native heaps.
#[derive(Debug, clap::Args)]
pub(crate) struct TakeArguments {
    /// Processes, by number or by the name of their program
    #[arg(value_name = "PID|NAME", required = true)]
    pids: Vec<String>,
    /// The processes that these have started, too
    #[arg(long)]
    tree: bool,
    /// Of the native heap, also where the process runs JavaScript
    #[arg(long)]
    native: bool,
    /// A name to find it by
    #[arg(long, value_name = "TEXT", default_value = "")]
    name: String,
    /// Go on watching processes that no session records yet: later snapshots then see what is allocated from now on with its
    /// stacks
    #[arg(long)]
    keep: bool,
    /// File for processes that no session records yet [default: heapr.PID.heapr, or heapr.PID.2.heapr and so on]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    force: bool,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
    /// Format: text, or json
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Runs the command.
pub(crate) fn run(arguments: &TakeArguments) -> anyhow::Result<ExitCode> {
    let pids = processes::named_with_children(&arguments.pids, arguments.tree)?;
    let (watched, unwatched) = watchers::find(&pids);
    let mut taken = Vec::new();
    let mut status = ExitCode::SUCCESS;
    let mut note =
        |outcome: anyhow::Result<SnapshotTaken>, pids: &[u32], session: Option<String>| match outcome {
            Ok(snapshot) => {
                if arguments.format == Format::Text && !arguments.quiet {
                    print(&snapshot, session.as_deref());
                }
                taken.push(value(&snapshot, pids, session));
            }
            Err(error) => {
                // The other processes are no worse for it.
                tell!("heapr: {error:#}");
                status = ExitCode::from(2);
            }
        };
    if let Some(output) = arguments.output.as_ref().filter(|_| !watched.is_empty() && !arguments.quiet) {
        watchers::tell_unused(output, &watched);
    }
    for watcher in watched {
        let outcome = ask(&watcher.client, &arguments.name, &watcher.pids);
        note(outcome, &watcher.pids, Some(watcher.client.name().to_string()));
    }
    // One file each, or all in the one that is named.
    let groups: Vec<&[u32]> = match arguments.output {
        Some(_) if !unwatched.is_empty() => vec![&unwatched],
        _ => unwatched.chunks(1).collect(),
    };
    for group in groups {
        let output = watchers::output(arguments.output.as_deref(), group, arguments.force);
        if arguments.keep {
            let more = if arguments.force { vec!["--force".to_owned()] } else { Vec::new() };
            let client = watchers::start(group, &output, &more);
            let session = client.as_ref().ok().map(|client| client.name().to_string());
            note(client.and_then(|client| ask(&client, &arguments.name, group)), group, session);
        } else {
            note(attach(group, &output, arguments), group, None);
        }
    }
    if let Some(remark) = processes::children_left_out(&pids).filter(|_| !arguments.quiet) {
        tell!("heapr: {remark}");
    }
    if arguments.format == Format::Json {
        crate::plain_text::say_json(&json!({ "schema": "heapr.snapshot.take/1", "snapshots": taken }));
    }
    Ok(status)
}

fn ask(client: &heapr_session::SessionClient, name: &str, pids: &[u32]) -> anyhow::Result<SnapshotTaken> {
    match client.ask(Request::Snapshot { name: name.to_owned(), pids: pids.to_vec() })? {
        Answer::Snapshot(snapshot) => Ok(snapshot),
        _ => anyhow::bail!("session {} answered something else: is it of the same heapr?", client.name()),
    }
}

/// Attaches, takes one and detaches.
fn attach(pids: &[u32], output: &Path, arguments: &TakeArguments) -> anyhow::Result<SnapshotTaken> {
    let mut properties = SessionProperties::new(output.to_owned());
    properties.name = watchers::session_name(pids);
    properties.mode = LoggingMode::Snapshot;
    properties.overwrite = arguments.force;
    let mut request = StartRequest::new(properties.clone());
    request.pids = pids.to_vec();
    let mut session =
        HeapTrace::start_request(request).map_err(|error| advice(Failure::from(&error), &properties))?;
    match session.snapshot(&arguments.name, pids) {
        Ok(snapshot) => {
            session.stop()?;
            Ok(snapshot)
        }
        Err(error) => {
            session.cancel()?;
            Err(error.into())
        }
    }
}

fn print(snapshot: &SnapshotTaken, session: Option<&str>) {
    let file = Path::new(&snapshot.output).display();
    let session = session.map(|name| format!(" of session {name}")).unwrap_or_default();
    say!(
        "{file}: snapshot {}{session}: {} in {}, written in {}",
        snapshot.number,
        bytes(snapshot.block_bytes),
        plural(snapshot.block_count, "block"),
        duration(snapshot.export_ns)
    );
    for note in &snapshot.notes {
        say!("  not seen: {note}");
    }
}

fn value(snapshot: &SnapshotTaken, pids: &[u32], session: Option<String>) -> Value {
    json!({
        "file": Path::new(&snapshot.output).to_string_lossy(),
        "session": session,
        "pids": pids,
        "number": snapshot.number,
        "time_ns": snapshot.time_ns,
        "blocks": snapshot.block_count,
        "bytes": snapshot.block_bytes,
        "export_ns": snapshot.export_ns,
        "notes": snapshot.notes,
    })
}
