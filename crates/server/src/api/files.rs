//! The open files and their states.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use crate::entry::{Change, Content, Entry};
use crate::error::Result;
use crate::host::{GraphQuestion, Host, IncidentTold};
use crate::request::{Answer, Context, read};

use super::trace_facts::TraceFacts;
use crate::resident_file::ResidentFacts;
use crate::session::SessionFacts;
use crate::snapshot_file::SnapshotFacts;
use crate::taken::TakenFacts;
use crate::trace_file::TraceFile;

pub(super) fn files(context: &Context<'_>) -> Result<Answer> {
    let all = context.files.entries();
    let host = &*context.files.host;
    let files = (0..all.len()).map(|number| open_file(number, &all, host)).collect();
    crate::request::json(&Files {
        schema: "heapr.view.files/1",
        heapr_version: context.files.host.version().to_owned(),
        files,
    })
}

fn open_file(number: usize, entries: &[Arc<Entry>], host: &dyn Host) -> OpenFile {
    let entry = &entries[number];
    if let Some(session) = &entry.session {
        session.note_interest();
    }
    let (content, path) = (entry.content(), entry.path());
    let State { name: state, error, offset } = State::of(&content, entry.change());
    let (mut trace, mut snapshot, mut resident, mut graph, mut taken) = (None, None, None, None, None);
    let mut incident = None;
    let (tasks, mut warnings) = match &content {
        Content::Trace(file) => {
            incident = host.incident_of(&path);
            let is_running = entry.session.as_ref().is_some_and(|session| session.stage().is_running());
            trace = Some(TraceFacts::new(host, file));
            (tasks(file), file.warnings(is_running))
        }
        Content::Snapshot(file) => {
            snapshot = file.facts();
            graph = file.graph().and_then(|graph| GraphFacts::of(graph, entries));
            taken = TakenFacts::of(&path, entries);
            (Vec::new(), file.warnings())
        }
        Content::Resident(file) => {
            resident = Some(file.facts());
            (Vec::new(), Vec::new())
        }
        Content::Opening => (vec![FileTask { what: "reading the snapshot", done: 0, all: 0 }], Vec::new()),
        Content::Failed { .. } => (Vec::new(), Vec::new()),
    };
    // The page shows what was lost at its top, and so the sentence that the recording was kept for.
    let sentence = incident.as_ref().and_then(|incident| incident.sentences.first());
    warnings.splice(0..0, sentence.cloned());
    OpenFile {
        file: number,
        kind: match &content {
            Content::Resident(_) => "resident",
            _ if entry.is_snapshot => "v8",
            _ => "trace",
        },
        name: path.file_name().map(|name| name.to_string_lossy().into_owned()),
        path: path.display().to_string(),
        file_bytes: entry.bytes(),
        generation: entry.generation(),
        state,
        error,
        offset,
        tasks,
        warnings,
        trace,
        snapshot,
        graph,
        taken,
        resident,
        incident,
        session: entry.session.as_ref().map(|session| session.facts()),
    }
}

/// State of an open file, as the page names it.
struct State {
    name: &'static str,
    error: Option<String>,
    offset: Option<u64>,
}

impl State {
    fn of(content: &Content, change: Change) -> Self {
        let new = |name, error| Self { name, error, offset: None };
        match (content, change) {
            (Content::Opening, _) => new("opening", None),
            (Content::Failed { message, offset }, _) => {
                Self { name: "failed", error: Some(message.clone()), offset: *offset }
            }
            (_, Change::None) => new("ready", None),
            (_, Change::Gone) => {
                let error = "the file has vanished: what is shown was read before";
                new("gone", Some(error.to_owned()))
            }
            (_, Change::Replaced) => {
                let error = "another file has this name now: what is shown is the one that was opened";
                new("changed", Some(error.to_owned()))
            }
            (_, Change::Shrunk { was_bytes, is_bytes }) => {
                let error =
                    format!("the file has shrunk from {was_bytes} to {is_bytes} bytes since it was opened");
                new("changed", Some(error))
            }
            (_, Change::Grown) => new("grown", None),
        }
    }
}

/// Progress of reading a file.
#[derive(Serialize)]
struct FileTask {
    what: &'static str,
    done: usize,
    all: usize,
}

/// An open file.
#[derive(Serialize)]
struct OpenFile {
    file: usize,
    kind: &'static str,
    name: Option<String>,
    path: String,
    file_bytes: u64,
    generation: u32,
    state: &'static str,
    error: Option<String>,
    /// Offset of the error in the file.
    offset: Option<u64>,
    tasks: Vec<FileTask>,
    warnings: Vec<String>,
    trace: Option<TraceFacts>,
    snapshot: Option<SnapshotFacts>,
    /// Trace whose graph the file is: the page shows it with that trace.
    graph: Option<GraphFacts>,
    /// Moment of an open recording of its process at which a heap was taken.
    taken: Option<TakenFacts>,
    resident: Option<ResidentFacts>,
    /// Incident that the trace is the recording of.
    incident: Option<IncidentTold>,
    session: Option<SessionFacts>,
}

/// Graph of a trace's native heap that is open as a file.
#[derive(Serialize)]
struct GraphFacts {
    /// Number of the trace in the list of files.
    file: usize,
    /// Number of the snapshot.
    number: u32,
    /// Process; null if the snapshot has one graph.
    pid: Option<u32>,
}

impl GraphFacts {
    fn of(graph: &GraphQuestion, entries: &[Arc<Entry>]) -> Option<Self> {
        let trace = std::path::absolute(&graph.trace).ok()?;
        let file = entries.iter().position(|entry| !entry.is_snapshot && entry.path() == trace)?;
        Some(Self { file, number: graph.snapshot, pid: graph.pid })
    }
}

/// The open files.
#[derive(Serialize)]
struct Files {
    schema: &'static str,
    heapr_version: String,
    files: Vec<OpenFile>,
}

fn tasks(trace: &TraceFile) -> Vec<FileTask> {
    let task = |task: &std::sync::Arc<crate::trace_file::Task>| FileTask {
        what: task.what,
        done: task.done.load(Ordering::Relaxed),
        all: task.all.load(Ordering::Relaxed),
    };
    trace.tasks().iter().map(task).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReopenRequest {
    file: usize,
}

pub(super) fn reopen(context: &Context<'_>, body: &[u8]) -> Result<Answer> {
    let request: ReopenRequest = read(body)?;
    context.files.reopen(request.file)?;
    files(context)
}
