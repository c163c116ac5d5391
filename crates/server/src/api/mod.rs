//! The requests of `docs/api.md`: names and JSON in, JSON out; no HTTP in here.

mod batch;
mod diff;
mod diff_flame;
mod export;
mod files;
mod flame;
mod flame_json;
mod frame;
pub(crate) mod ids;
mod leaks;
mod panels;
pub(crate) mod report;
mod session;
mod source_lines;
mod stack;
mod timeline;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::Files;

/// What a request gets.
#[derive(Debug)]
pub(crate) enum Answer {
    Json(Vec<u8>),
    /// A file to be saved.
    File {
        name: String,
        bytes: Vec<u8>,
    },
}

/// What all requests are answered with.
pub(crate) struct Context<'a> {
    pub(crate) files: &'a Files,
    pub(crate) cancel: &'a Cancel,
}

/// Reads a request.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| Error::BadRequest {
        field: None,
        message: format!("the request can't be read: {error}"),
    })
}

/// Writes an answer.
pub(crate) fn json(answer: &impl Serialize) -> Result<Answer> {
    serde_json::to_vec(answer).map(Answer::Json).map_err(|error| Error::Internal(error.to_string()))
}

/// Answers a request by its name, which is the address after `/api/`.
pub(crate) fn answer(files: &Files, name: &str, body: &[u8], cancel: &Cancel) -> Result<Answer> {
    cancel.check()?;
    let context = Context { files, cancel };
    match name {
        "files" => files::files(&context),
        "reopen" => files::reopen(&context, body),
        "timeline" => timeline::timeline(&context, body),
        "report" => report::report(&context, body),
        "leaks" => leaks::leaks(&context, body),
        "stack" => stack::stack(&context, body),
        "flame" => flame::flame(&context, body),
        "frame" => frame::frame(&context, body),
        "panels" => batch::batch(&context, body),
        "histograms" => panels::histograms(&context, body),
        "types" => panels::types(&context, body),
        "diff" => diff::diff(&context, body),
        "diff-flame" => diff_flame::diff_flame(&context, body),
        "export" => export::export(&context, body),
        name => match name.split_once('/') {
            Some(("snapshot", name)) => crate::snapshot::answer(&context, name, body),
            Some(("native", name)) => crate::native::answer(&context, name, body),
            Some(("session", name)) => session::answer(&context, name, body),
            _ => Err(Error::NotFound { what: "request", name: name.to_owned() }),
        },
    }
}

/// Answers a request outside of a server, as for a page that stands alone.
///
/// # Errors
/// As the request's.
pub fn answer_json(files: &Files, name: &str, body: &[u8]) -> Result<Vec<u8>> {
    match answer(files, name, body, &Cancel::default())? {
        Answer::Json(bytes) | Answer::File { bytes, .. } => Ok(bytes),
    }
}
