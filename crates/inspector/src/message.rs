//! Messages of the inspector protocol, parsed without a value tree.
//!
//! ```text
//! {"id":3,"result":{…}}   {"id":3,"error":{"code":-32601,"message":"…"}}   {"method":"…","params":{…}}
//! ```

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::error::{Error, Result};
use super::escapes::unescape_into;

/// Message, borrowed from its text.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    /// Number of the request, in an answer.
    pub(crate) id: Option<u64>,
    /// Name of the event, in an event.
    #[serde(borrow)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) result: Option<&'a RawValue>,
    pub(crate) error: Option<Refusal>,
}

/// Error with which the inspector refuses a request.
#[derive(Debug, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) message: String,
}

impl<'a> Message<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self> {
        let mut message: Self = serde_json::from_str(text).map_err(|error| bad(&error.to_string(), text))?;
        // workerd repeats the request in its answer.
        if message.id.is_some() {
            (message.method, message.params) = (None, None);
        }
        Ok(message)
    }
}

/// Parses the parameters of an event, or the result of a request.
pub(crate) fn parse_value<'a, T: Deserialize<'a>>(value: &'a RawValue) -> Result<T> {
    serde_json::from_str(value.get()).map_err(|error| bad(&error.to_string(), value.get()))
}

/// Appends the unescaped bytes of a string value.
pub(crate) fn string_bytes_into(value: &RawValue, out: &mut Vec<u8>) -> Result<()> {
    let text = value.get();
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    inner
        .and_then(|inner| unescape_into(inner.as_bytes(), out))
        .ok_or_else(|| bad("a string was expected", text))
}

fn bad(what: &str, text: &str) -> Error {
    Error::BadMessage { what: what.to_owned(), start: text.chars().take(120).collect() }
}

/// Parameters of a snapshot chunk; only the text is read.
#[derive(Debug, Deserialize)]
pub(crate) struct ChunkParams<'a> {
    #[serde(borrow)]
    pub(crate) chunk: &'a RawValue,
}

/// Parameters of `HeapProfiler.reportHeapSnapshotProgress`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct ProgressParams {
    pub(crate) done: u64,
    pub(crate) total: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_refusals_and_events_are_told_apart() {
        let answer = Message::parse(r#"{"id":3,"result":{"usedSize":1}}"#).unwrap();
        assert_eq!((answer.id, answer.result.unwrap().get()), (Some(3), r#"{"usedSize":1}"#));
        let refusal = Message::parse(r#"{"error":{"code":-32601,"message":"no \"x\""},"id":4}"#).unwrap();
        assert_eq!(refusal.error.unwrap().message, "no \"x\"");
        let repeated = Message::parse(r#"{"id":2,"method":"A.b","params":{},"result":{}}"#).unwrap();
        assert!(repeated.method.is_none() && repeated.params.is_none() && repeated.result.is_some());
        let event =
            Message::parse(r#"{"method":"A.b","params":{"chunk":"x\n\"y\""},"sessionId":"7"}"#).unwrap();
        assert_eq!(event.method.as_deref(), Some("A.b"));
        let mut bytes = Vec::new();
        string_bytes_into(parse_value::<ChunkParams<'_>>(event.params.unwrap()).unwrap().chunk, &mut bytes)
            .unwrap();
        assert_eq!(bytes, b"x\n\"y\"");
    }

    #[test]
    fn what_is_no_message_is_told_with_its_start() {
        let error = Message::parse("<html>").unwrap_err().to_string();
        assert!(error.contains("<html>"), "{error}");
    }
}
