//! Parts that requests and answers share.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::Files;

/// Answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    Json(Vec<u8>),
    /// A file to be saved.
    File {
        name: String,
        bytes: Vec<u8>,
    },
}

/// Context in which requests are answered.
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

/// Default number of a request's field.
pub(crate) fn number<const N: usize>() -> usize {
    N
}

/// Default `true` of a request's field.
pub(crate) fn yes() -> bool {
    true
}

/// Default grouping of a request: whole stacks.
pub(crate) fn stacks() -> String {
    "stacks".to_owned()
}

/// Default sort key of a request: outstanding bytes.
pub(crate) fn so() -> String {
    "so".to_owned()
}
