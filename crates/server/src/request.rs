//! Parts that requests and answers share.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::request_fields::RequestFields;

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
    let mut fields = RequestFields::parse(body)?;
    let request = fields.part()?;
    fields.finish()?;
    Ok(request)
}

/// Reads a request with a part that other requests have, too.
pub(crate) fn read_with<T: DeserializeOwned, P: DeserializeOwned>(body: &[u8]) -> Result<(T, P)> {
    let mut fields = RequestFields::parse(body)?;
    let parts = (fields.part()?, fields.part()?);
    fields.finish()?;
    Ok(parts)
}

/// Writes an answer.
pub(crate) fn json(answer: &impl Serialize) -> Result<Answer> {
    serde_json::to_vec(answer).map(Answer::Json).map_err(|error| Error::Internal(error.to_string()))
}

/// Default number of a request's field.
pub(crate) fn number<const N: usize>() -> usize {
    N
}
