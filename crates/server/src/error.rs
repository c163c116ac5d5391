//! Errors of requests, with their HTTP status.

use std::borrow::Cow;

/// Error of this crate, which a request gets in place of an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid.
    #[error("{message}")]
    BadRequest {
        /// Name of the field.
        field: Option<Cow<'static, str>>,
        /// Reason.
        message: String,
    },
    /// The named thing does not exist.
    #[error("there is no {what} {name}")]
    NotFound {
        /// Kind: file, object, stack.
        what: &'static str,
        /// Name in the request.
        name: String,
    },
    /// The file has another kind than the request needs.
    #[error("file {file} is no {wanted}")]
    OtherKind {
        /// Number of the file.
        file: usize,
        /// Required kind.
        wanted: &'static str,
    },
    /// The file is still being opened.
    #[error("{path} is still being opened: ask again when /api/files says that it is ready")]
    Opening {
        /// Path of the file.
        path: String,
    },
    /// The session has ended.
    #[error("the session does not run any more: its file stays as it is")]
    Ended,
    /// The file is shorter than it was.
    #[error("{path} has shrunk from {was_bytes} to {is_bytes} bytes since it was opened: open it again")]
    Shrunk {
        /// Path of the file.
        path: String,
        /// Size at the opening.
        was_bytes: u64,
        /// Present size.
        is_bytes: u64,
    },
    /// The file cannot be used.
    #[error("{path}: {message}")]
    Unusable {
        /// Path of the file.
        path: String,
        /// Reason.
        message: String,
        /// Offset in the file.
        offset: Option<u64>,
    },
    /// The client gave the request up.
    #[error("the request was given up")]
    GivenUp,
    /// A query failed.
    #[error(transparent)]
    Query(heapr_query::Error),
    /// The socket cannot be opened.
    #[error("cannot listen on 127.0.0.1, port {port}: {source}")]
    Listen {
        /// Requested port; 0: any.
        port: u16,
        /// Reason.
        source: std::io::Error,
    },
    /// The random token cannot be made.
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(std::io::Error),
    /// The server cannot run.
    #[error("the server cannot run: {0}")]
    Run(std::io::Error),
    /// A bug: an answer could not be written, or a thread panicked.
    #[error("{0}: this is an error of heapr's")]
    Internal(String),
}

impl From<heapr_query::Error> for Error {
    fn from(error: heapr_query::Error) -> Self {
        match error {
            heapr_query::Error::GivenUp => Self::GivenUp,
            error => Self::Query(error),
        }
    }
}

impl Error {
    pub(crate) fn bad(field: &'static str, message: impl Into<String>) -> Self {
        Self::BadRequest { field: Some(field.into()), message: message.into() }
    }

    /// HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        match self {
            Self::BadRequest { .. } | Self::OtherKind { .. } => 400,
            Self::NotFound { .. } => 404,
            Self::Opening { .. } => 409,
            Self::Shrunk { .. } | Self::Ended => 410,
            Self::Unusable { .. } => 422,
            Self::GivenUp => 499,
            Self::Query(heapr_query::Error::Trace(_)) => 422,
            Self::Query(_) => 400,
            _ => 500,
        }
    }

    /// JSON body of the error.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let offset = match self {
            Self::Unusable { offset, .. } => *offset,
            Self::Query(heapr_query::Error::Trace(heapr_trace::Error::Damaged { offset, .. })) => {
                Some(*offset)
            }
            _ => None,
        };
        let field = match self {
            Self::BadRequest { field, .. } => field.as_deref(),
            Self::Query(_) => Some("filter"),
            _ => None,
        };
        serde_json::json!({ "error": self.to_string(), "offset": offset, "field": field })
            .to_string()
            .into_bytes()
    }
}

/// Result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;
