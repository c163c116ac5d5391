//! `heapr snapshot take` of processes with a native heap: requests it from the session that records
//! them, or attaches for the snapshot.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use heapr_managed::Interpreter;
use heapr_session::{
    Answer, Failure, GraphPause, GraphRequest, HeapTrace, LoggingMode, ManagedRequest, Request,
    SessionProperties, SnapshotTaken, StartRequest,
};
use serde_json::{Value, json};

use super::{cost, watchers};
use crate::graph_contents::{Contents, contents};
use crate::processes;
use crate::sessions::advice;
use crate::snapshot_take::{Format, TakeQuestion};
use heapr_table::quantity::{bytes_within, duration, plural_within};

/// Usual longest pause, in milliseconds.
const MAX_PAUSE_MS: u64 = 30_000;

/// Options for snapshots of native heaps only.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct NativeTakeOptions {
    /// Take the native heap, also of a process that runs JavaScript
    #[arg(long)]
    native: bool,
    /// A name to find it by
    #[arg(long, value_name = "TEXT", default_value = "")]
    name: String,
    /// Go on watching processes that no session records yet: later snapshots then see what is
    /// allocated from now on with its stacks
    #[arg(long)]
    keep: bool,
    /// With the references between the blocks, and from registers, stacks and data to them: for
    /// leaks and what holds a block
    #[arg(long)]
    graph: bool,
    /// Time for which the process stands still: until a copy of its memory is made, until all is
    /// read, or none
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Pause::Copy)]
    pause: Pause,
    /// Longest that the process may stand still for it, or that a copy of it may live, in
    /// milliseconds
    #[arg(long, value_name = "MS", default_value_t = MAX_PAUSE_MS)]
    max_pause: u64,
    /// Contents that are written: of native graphs none by default, of Python names alone
    #[arg(long, value_enum, value_name = "WHAT")]
    contents: Option<Contents>,
    /// Go on recording for so long: a block that is freed meanwhile is no leak, and is struck
    #[arg(long, value_name = "SECONDS", requires = "graph", value_parser = heapr_filters::quantity::parse_seconds)]
    confirm: Option<Duration>,
}

/// Way of stopping a process for its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Pause {
    /// Until it is copied; where it cannot be, until all is read
    Copy,
    /// Until all is read
    Stop,
    /// No pause: the process is read twice while it runs, 5 s apart. Blocks that no reference leads
    /// to both times, and that are unchanged, are definitely leaked
    None,
}

impl NativeTakeOptions {
    /// Splits the processes of a session into requests: a graph is of one process.
    fn groups<'p>(&self, pids: &'p [u32]) -> std::slice::Chunks<'p, u32> {
        pids.chunks(if self.graph { 1 } else { usize::MAX })
    }

    /// Refuses options of graphs where no graph is taken.
    ///
    /// # Errors
    /// Contents, or another pause than usual, without a graph.
    pub(in crate::snapshot) fn check(&self) -> anyhow::Result<()> {
        if !self.graph && self.contents.is_some() {
            bail!("--contents: needs --graph, as only graphs of native heaps have contents");
        }
        if !self.graph && (self.pause != Pause::Copy || self.max_pause != MAX_PAUSE_MS) {
            bail!("--pause and --max-pause: need --graph, as a native snapshot without one stops nothing");
        }
        Ok(())
    }

    /// Longest that a process may stand still.
    pub(in crate::snapshot) fn max_pause(&self) -> Duration {
        Duration::from_millis(self.max_pause)
    }

    /// Returns the options of a snapshot of a managed heap.
    pub(in crate::snapshot) fn managed(&self) -> anyhow::Result<(GraphPause, ManagedRequest)> {
        if self.pause == Pause::None {
            bail!(
                "--pause none: objects of a running interpreter change while they are read; copy and stop work"
            );
        }
        let contents = match self.contents {
            Some(Contents::Strings) => heapr_managed::Contents::Strings,
            None => heapr_managed::Contents::Names,
        };
        let copies = self.pause == Pause::Copy;
        let max_pause = Duration::from_millis(self.max_pause);
        Ok((
            self.graph_pause(),
            ManagedRequest { interpreter: Interpreter::default(), max_pause, copies, contents },
        ))
    }

    /// Returns the options of snapshots of a managed heap for which none were given.
    pub(in crate::snapshot) fn usual_managed() -> ManagedRequest {
        let max_pause = Duration::from_millis(MAX_PAUSE_MS);
        let (interpreter, contents) = (Interpreter::default(), heapr_managed::Contents::Names);
        ManagedRequest { interpreter, max_pause, copies: true, contents }
    }

    fn graph_pause(&self) -> GraphPause {
        match self.pause {
            Pause::Copy => GraphPause::Copy,
            Pause::Stop => GraphPause::Stop,
            Pause::None => GraphPause::None,
        }
    }

    fn graph(&self) -> Option<GraphRequest> {
        self.graph.then(|| GraphRequest {
            max_pause: Duration::from_millis(self.max_pause),
            pause: self.graph_pause(),
            contents: contents(self.contents),
            ..GraphRequest::default()
        })
    }
}

/// Runs the command.
pub(crate) fn take(
    asked: &TakeQuestion,
    options: &NativeTakeOptions,
    is_quiet: bool,
) -> anyhow::Result<ExitCode> {
    let pids = processes::named_with_children(&asked.pids, asked.tree)?;
    if options.graph && !is_quiet && asked.format == Format::Text {
        for told in pids.iter().filter_map(|&pid| cost::told_before(pid, options.graph_pause())) {
            tell!("heapr: {told}");
        }
    }
    let (watched, unwatched) = watchers::find(&pids);
    let mut taken = Vec::new();
    let mut status = ExitCode::SUCCESS;
    let mut note =
        |outcome: anyhow::Result<SnapshotTaken>, pids: &[u32], session: Option<String>| match outcome {
            Ok(snapshot) => {
                if asked.format == Format::Text && !is_quiet {
                    print(&snapshot, session.as_deref());
                }
                taken.push(value(&snapshot, pids, session));
            }
            Err(error) => {
                // The other processes are not affected.
                tell!("heapr: {error:#}");
                status = ExitCode::from(2);
            }
        };
    if let Some(output) = asked.output.as_ref().filter(|_| !watched.is_empty() && !is_quiet) {
        watchers::tell_unused(output, &watched);
    }
    for watcher in watched {
        for pids in options.groups(&watcher.pids) {
            let outcome = ask(&watcher.client, options, pids);
            note(outcome, pids, Some(watcher.client.name().to_string()));
        }
    }
    // One file for each process, or all in the file that is named.
    let groups: Vec<&[u32]> = match asked.output {
        Some(_) if !unwatched.is_empty() && !options.graph => vec![&unwatched],
        _ => unwatched.chunks(1).collect(),
    };
    for group in groups {
        let output = watchers::output(asked.output.as_deref(), group, asked.force)?;
        if options.keep {
            let more = if asked.force { vec!["--force".to_owned()] } else { Vec::new() };
            let client = watchers::start(group, &output, &more);
            let session = client.as_ref().ok().map(|client| client.name().to_string());
            note(client.and_then(|client| ask(&client, options, group)), group, session);
        } else {
            note(attach(group, &output, asked, options), group, None);
        }
    }
    if let Some(remark) = processes::children_left_out(&pids).filter(|_| !is_quiet) {
        tell!("heapr: {remark}");
    }
    if asked.format == Format::Json {
        crate::plain_text::say_json(&json!({ "schema": "heapr.snapshot.take/1", "snapshots": taken }));
    }
    Ok(status)
}

fn ask(
    client: &heapr_session::SessionClient,
    options: &NativeTakeOptions,
    pids: &[u32],
) -> anyhow::Result<SnapshotTaken> {
    let request =
        Request::Snapshot { name: options.name.clone(), pids: pids.to_vec(), graph: options.graph() };
    match client.ask(request)? {
        Answer::Snapshot(snapshot) => Ok(snapshot),
        _ => anyhow::bail!("session {} answered something else: is it of the same heapr?", client.name()),
    }
}

/// Attaches, takes a snapshot and detaches.
fn attach(
    pids: &[u32],
    output: &Path,
    asked: &TakeQuestion,
    options: &NativeTakeOptions,
) -> anyhow::Result<SnapshotTaken> {
    let mut properties = SessionProperties::new(output.to_owned());
    properties.name = watchers::session_name(pids);
    // Later frees are seen only in events.
    properties.mode = if options.confirm.is_some() { LoggingMode::Trace } else { LoggingMode::Snapshot };
    properties.overwrite = asked.force;
    let mut request = StartRequest::new(properties.clone());
    request.pids = pids.to_vec();
    let mut session =
        HeapTrace::start_request(request).map_err(|error| advice(Failure::from(&error), &properties))?;
    let outcome = match options.graph() {
        Some(graph) => session.graph_snapshot(&options.name, pids.first().copied().unwrap_or(0), graph),
        None => session.snapshot(&options.name, pids),
    };
    match outcome {
        Ok(snapshot) => {
            std::thread::sleep(options.confirm.unwrap_or_default());
            session.stop()?;
            Ok(snapshot)
        }
        // Data read so far stays in the file: blocks without references.
        Err(error) if options.graph => {
            session.stop()?;
            let error = anyhow::Error::from(error);
            let has_blocks =
                |trace: heapr_trace::Trace| trace.snapshots().iter().any(|snapshot| snapshot.block_count > 0);
            if crate::trace_file::open(output).is_ok_and(has_blocks) {
                bail!("{error:#} (its blocks are in {}, without references)", output.display());
            }
            let _ = std::fs::remove_file(output);
            Err(error)
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
        bytes_within(snapshot.block_bytes, snapshot.block_bytes_plus_minus),
        plural_within(snapshot.block_count, snapshot.block_count_plus_minus, "block"),
        duration(snapshot.export_ns)
    );
    match snapshot.pause_ns {
        Some(0) => say!("  with references; it did not stand still"),
        Some(pause_ns) => say!("  with references; it stood still for {}", duration(pause_ns)),
        None => {}
    }
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
        "block_count": snapshot.block_count,
        "block_bytes": snapshot.block_bytes,
        "block_count_plus_minus": snapshot.block_count_plus_minus,
        "block_bytes_plus_minus": snapshot.block_bytes_plus_minus,
        "export_ns": snapshot.export_ns,
        "pause_ns": snapshot.pause_ns,
        "notes": snapshot.notes,
    })
}
