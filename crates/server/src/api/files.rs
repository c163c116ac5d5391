//! The files and their states.

use std::sync::atomic::Ordering;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::entry::{Change, Content};
use crate::error::Result;
use crate::request::{Answer, Context, read};

use crate::host::Host;
use crate::json::TotalsJson;
use crate::native::snapshot_json;
use crate::trace_file::TraceFile;

pub(super) fn files(context: &Context<'_>) -> Result<Answer> {
    let entries = context.files.entries.iter().enumerate();
    let files: Vec<Value> = entries
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
            let (tasks, warnings, trace, snapshot) = match &content {
                Content::Trace(trace) => {
                    let is_running =
                        entry.session.as_ref().is_some_and(|session| session.stage().is_running());
                    (
                        tasks(trace),
                        trace.warnings(is_running),
                        trace_facts(&*context.files.host, trace),
                        Value::Null,
                    )
                }
                Content::Snapshot(snapshot) => {
                    (json!([]), snapshot.warnings(), Value::Null, snapshot.facts())
                }
                Content::Opening => (
                    json!([{ "what": "reading the snapshot", "done": 0, "all": 0 }]),
                    Vec::new(),
                    Value::Null,
                    Value::Null,
                ),
                Content::Failed { .. } => (json!([]), Vec::new(), Value::Null, Value::Null),
            };
            json!({
                "file": number,
                "kind": if entry.is_snapshot { "v8" } else { "trace" },
                "name": path.file_name().map(|name| name.to_string_lossy().into_owned()),
                "path": path.display().to_string(),
                "file_bytes": entry.bytes(),
                "generation": entry.generation(),
                "state": state,
                "error": error,
                "offset": offset,
                "tasks": tasks,
                "warnings": warnings,
                "trace": trace,
                "snapshot": snapshot,
                "session": entry.session.as_ref().map(|session| session.facts()),
            })
        })
        .collect();
    crate::request::json(&json!({
        "schema": "heapr.view.files/1",
        "heapr_version": context.files.host.version(),
        "files": files,
    }))
}

fn tasks(trace: &TraceFile) -> Value {
    let task = |task: &std::sync::Arc<crate::trace_file::Task>| {
        json!({
            "what": task.what,
            "done": task.done.load(Ordering::Relaxed),
            "all": task.all.load(Ordering::Relaxed),
        })
    };
    trace.tasks().iter().map(task).collect()
}

fn trace_facts(host: &dyn Host, file: &TraceFile) -> Value {
    let trace = file.trace();
    let (system, session, loss) = (trace.system(), trace.session(), trace.whole_loss());
    let processes: Vec<Value> = trace
        .processes()
        .iter()
        .enumerate()
        .map(|(number, process)| {
            let status = process.exit_status;
            // As wait(2) has it: the low seven bits are the signal.
            let signal = status.map(|status| status & 0x7f).filter(|&signal| signal != 0);
            let exit_code = status.filter(|_| signal.is_none()).map(|status| status >> 8 & 0xff);
            json!({
                "process": number, "pid": process.pid, "name": process.name(), "executable": process.executable,
                "command_line": process.command_line,
                "start_ns": process.start_ns, "end_ns": process.end_ns, "exit_code": exit_code, "signal": signal,
            })
        })
        .collect();
    let threads: Vec<Value> = trace
        .threads()
        .iter()
        .enumerate()
        .map(|(number, thread)| {
            json!({
                "thread": number, "process": thread.process.0, "tid": thread.tid, "name": thread.name,
                "start_ns": thread.start_ns, "end_ns": thread.end_ns,
            })
        })
        .collect();
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let totals = trace.summary_totals().ok().flatten();
    json!({
        "duration_ns": trace.duration_ns(),
        "start_unix_ns": session.start_unix_ns,
        "event_count": trace.event_count(),
        "is_complete": trace.is_complete(),
        "session": session.name,
        "heapr_version": session.heapr_version,
        "command_line": session.command_line,
        "loss": {
            "events_lost": loss.events_lost, "stacks_lost": loss.stacks_lost, "events_late": loss.events_late,
            "records_invalid": loss.records_invalid, "processes_refused": loss.processes_refused,
        },
        "damage": file.damage().iter().map(|damage| json!({"offset": damage.offset, "bytes": damage.bytes, "what": damage.what})).collect::<Vec<_>>(),
        "system": {
            "kernel": system.kernel, "machine": system.machine, "distribution": system.distribution, "cpu_count": system.cpu_count,
            "memory_bytes": system.memory_bytes, "page_bytes": system.page_bytes,
        },
        "processes": processes,
        "threads": threads,
        "modules": trace.modules().iter().map(|module| json!({"path": module.path, "build_id": hexadecimal(&module.build_id)})).collect::<Vec<_>>(),
        "markers": trace.markers().iter().map(|marker| json!({"time_ns": marker.time_ns, "text": marker.text})).collect::<Vec<_>>(),
        "snapshots": trace.snapshots().iter().map(|snapshot| snapshot_json(trace, snapshot, &host.trigger(snapshot.trigger))).collect::<Vec<_>>(),
        "totals": totals.map(|summary| TotalsJson::from(&summary.totals)),
    })
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
