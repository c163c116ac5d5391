//! What requests and answers have in common.

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

/// Where a request says nothing: this number.
pub(crate) fn number<const N: usize>() -> usize {
    N
}

/// Where a request says nothing: yes.
pub(crate) fn yes() -> bool {
    true
}

/// Where a request says nothing: whole stacks.
pub(crate) fn stacks() -> String {
    "stacks".to_owned()
}

/// Where a request says nothing: sorted by what is outstanding.
pub(crate) fn so() -> String {
    "so".to_owned()
}
