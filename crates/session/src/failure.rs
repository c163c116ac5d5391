//! Answer of a session to a request that failed.

use serde::{Deserialize, Serialize};

/// Reason for which a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Kind, for programs.
    pub kind: FailureKind,
    /// Sentence for people.
    pub message: String,
}

/// Kinds of failures, as in the API of a trace session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// Session of that name exists.
    AlreadyExists,
    /// Session of that name does not exist.
    NoSuchSession,
    /// Invalid property, flag or name.
    Invalid,
    /// Not enough memory (or address space, or room for shared buffers).
    OutOfMemory,
    /// Process does not exist.
    NoSuchProcess,
    /// Not allowed; the message names the setting.
    NoPermission,
    /// Process cannot be traced; the message says why.
    NotTraceable,
    /// File could not be made or written.
    Output,
    /// Other side does not speak this protocol.
    Protocol,
    /// Other failure; the message describes it.
    Other,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}
