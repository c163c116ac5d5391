//! `heapr snapshot take` of processes with a native heap: asks the session that records them, or attaches for the snapshot.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use heapr_session::{
    Answer, HeapTrace, LoggingMode, Request, SessionProperties, SnapshotTaken, StartRequest,
};
use serde_json::{Value, json};

use super::watchers;
use crate::commands::report::Format;
use crate::report::quantity::{bytes, duration, plural};

/// Arguments of `heapr snapshot take` for native heaps.
#[derive(Debug, clap::Args)]
pub(crate) struct TakeArguments {
    /// Processes
    #[arg(value_name = "PID", required = true)]
    pids: Vec<u32>,
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
    /// File for processes that no session records yet [default: heapr.PID.heapr]
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
    let (watched, unwatched) = watchers::find(&arguments.pids);
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
                eprintln!("heapr: {error:#}");
                status = ExitCode::from(2);
            }
        };
    for watcher in watched {
        let outcome = ask(&watcher.client, &arguments.name, &watcher.pids);
        note(outcome, &watcher.pids, Some(watcher.client.name().to_string()));
    }
    for pid in unwatched {
        let output = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("heapr.{pid}.heapr")));
        if arguments.keep {
            let more = if arguments.force { vec!["--force".to_owned()] } else { Vec::new() };
            let client = watchers::start(&[pid], &output, &more);
            let session = client.as_ref().ok().map(|client| client.name().to_string());
            note(client.and_then(|client| ask(&client, &arguments.name, &[pid])), &[pid], session);
        } else {
            note(attach(pid, &output, arguments), &[pid], None);
        }
    }
    if arguments.format == Format::Json {
        println!("{:#}", json!({ "schema": "heapr.native-snapshot-take/1", "snapshots": taken }));
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
fn attach(pid: u32, output: &Path, arguments: &TakeArguments) -> anyhow::Result<SnapshotTaken> {
    let mut properties = SessionProperties::new(output.to_owned());
    properties.name = watchers::session_name(&[pid]);
    properties.mode = LoggingMode::Snapshot;
    properties.overwrite = arguments.force;
    let mut request = StartRequest::new(properties);
    request.pids = vec![pid];
    let mut session = HeapTrace::start_request(request)?;
    match session.snapshot(&arguments.name, &[pid]) {
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
    println!(
        "{file}: snapshot {}{session}: {} in {}, written in {}",
        snapshot.number,
        bytes(snapshot.block_bytes),
        plural(snapshot.block_count, "block"),
        duration(snapshot.export_ns)
    );
    for note in &snapshot.notes {
        println!("  not seen: {note}");
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
