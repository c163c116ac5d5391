//! Requests to a running session: markers, snapshots, end, status.

use std::sync::Arc;

use heapr_session::{Answer as SessionAnswer, ClientError, Request};
use serde::Deserialize;
use serde_json::json;

use crate::error::{Error, Result};
use crate::request::{Answer, Context, read};
use crate::session::RunningSession;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SessionRequest {
    file: usize,
    #[serde(default)]
    text: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    pids: Vec<u32>,
}

pub(super) fn answer(context: &Context<'_>, name: &str, body: &[u8]) -> Result<Answer> {
    let request: SessionRequest = read(body)?;
    let entry = context.files.entry(request.file)?;
    let session =
        entry.session.as_ref().ok_or(Error::OtherKind { file: request.file, wanted: "session that runs" })?;
    let answer = match name {
        "status" => session.history(),
        "mark" if request.text.is_empty() => return Err(Error::bad("text", "a marker needs a text")),
        "mark" => {
            ask(session, Request::Mark(request.text))?;
            json!({"schema": "heapr.view.session.mark/1"})
        }
        "snapshot" => {
            match ask(session, Request::Snapshot { name: request.name, pids: request.pids, graph: None })? {
                SessionAnswer::Snapshot(taken) => json!({
                    "schema": "heapr.view.session.snapshot/1", "number": taken.number, "time_ns": taken.time_ns,
                    "block_bytes": taken.block_bytes, "block_bytes_plus_minus": taken.block_bytes_plus_minus,
                    "block_count": taken.block_count, "block_count_plus_minus": taken.block_count_plus_minus,
                    "notes": taken.notes,
                }),
                _ => return Err(no_sense()),
            }
        }
        "stop" => match ask(session, Request::Stop)? {
            SessionAnswer::Stopped(report) => json!({
                "schema": "heapr.view.session.stop/1", "output": report.output.to_string_lossy(),
                "event_count": report.event_count, "wall_ns": report.wall_ns, "write_error": report.write_error,
            }),
            _ => return Err(no_sense()),
        },
        name => return Err(Error::NotFound { what: "request", name: format!("session/{name}") }),
    };
    crate::request::json(&answer)
}

fn ask(session: &Arc<RunningSession>, request: Request) -> Result<SessionAnswer> {
    // The snapshot or marker should be shown soon.
    session.note_interest();
    session.ask(request).map_err(|error| match error {
        ClientError::NoSuchSession { .. } => Error::Ended,
        error => Error::BadRequest { field: None, message: error.to_string() },
    })
}

fn no_sense() -> Error {
    Error::Internal("the session's answer makes no sense".to_owned())
}
