//! What a session answers where it has not done something.

use serde::{Deserialize, Serialize};

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// In a word, for programs.
    pub kind: FailureKind,
    /// In a sentence, for people.
    pub message: String,
}

/// Kinds of failures, as the errors of a trace session's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// A session of that name exists.
    AlreadyExists,
    /// There is no session of that name.
    NoSuchSession,
    /// A property, flag or name makes no sense.
    Invalid,
    /// Not enough memory (or address space, or room for shared buffers).
    OutOfMemory,
    /// No such process.
    NoSuchProcess,
    /// Not allowed; the message names the setting.
    NoPermission,
    /// This process cannot be traced; the message says why.
    NotTraceable,
    /// The file could not be made or written.
    Output,
    /// The other side does not speak this protocol.
    Protocol,
    /// Whatever else; the message says what.
    Other,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
