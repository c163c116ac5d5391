//! The open files and their states.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use crate::entry::{Change, Content};
use crate::error::Result;
use crate::request::{Answer, Context, read};

use super::trace_facts::TraceFacts;
use crate::resident_file::ResidentFacts;
use crate::session::SessionFacts;
use crate::snapshot_file::SnapshotFacts;
use crate::trace_file::TraceFile;

pub(super) fn files(context: &Context<'_>) -> Result<Answer> {
    let all = context.files.entries();
    let entries = all.iter().enumerate();
    let files: Vec<OpenFile> = entries
        .map(|(number, entry)| {
            if let Some(session) = &entry.session {
                session.note_interest();
            }
            let (content, path) = (entry.content(), entry.path());
            let change = entry.change();
            let (mut error, mut offset) = (None, None);
            let mut state = match &content {
                Content::Opening => "opening",
                Content::Failed { message, offset: at } => {
                    (error, offset) = (Some(message.clone()), *at);
                    "failed"
                }
                _ => "ready",
            };
            if state == "ready" {
                (state, error) = match change {
                    Change::None => (state, error),
                    Change::Gone => {
                        ("gone", Some("the file has vanished: what is shown was read before".to_owned()))
                    }
                    Change::Replaced => (
                        "changed",
                        Some(
                            "another file has this name now: what is shown is the one that was opened"
                                .to_owned(),
                        ),
                    ),
                    Change::Shrunk { was_bytes, is_bytes } => (
                        "changed",
                        Some(format!(
                            "the file has shrunk from {was_bytes} to {is_bytes} bytes since it was opened"
                        )),
                    ),
                    Change::Grown => ("grown", None),
                };
            }
            let (mut trace, mut snapshot, mut resident) = (None, None, None);
            let (tasks, warnings) = match &content {
                Content::Trace(file) => {
                    let is_running =
                        entry.session.as_ref().is_some_and(|session| session.stage().is_running());
                    trace = Some(TraceFacts::new(&*context.files.host, file));
                    (tasks(file), file.warnings(is_running))
                }
                Content::Snapshot(file) => {
                    snapshot = file.facts();
                    (Vec::new(), file.warnings())
                }
                Content::Resident(file) => {
                    resident = Some(file.facts());
                    (Vec::new(), Vec::new())
                }
                Content::Opening => {
                    (vec![FileTask { what: "reading the snapshot", done: 0, all: 0 }], Vec::new())
                }
                Content::Failed { .. } => (Vec::new(), Vec::new()),
            };
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
                resident,
                session: entry.session.as_ref().map(|session| session.facts()),
            }
        })
        .collect();
    crate::request::json(&Files {
        schema: "heapr.view.files/1",
        heapr_version: context.files.host.version().to_owned(),
        files,
    })
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
    resident: Option<ResidentFacts>,
    session: Option<SessionFacts>,
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
