//! What can go wrong, and the status that tells it.

/// An error of this crate: what a request gets in place of an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request makes no sense.
    #[error("{message}")]
    BadRequest {
        /// Which field.
        field: Option<&'static str>,
        /// Why.
        message: String,
    },
    /// There is no such thing.
    #[error("there is no {what} {name}")]
    NotFound {
        /// File, object, stack.
        what: &'static str,
        /// As it was asked for.
        name: String,
    },
    /// The file has another kind than the request needs.
    #[error("file {file} is no {wanted}")]
    OtherKind {
        /// Its number.
        file: usize,
        /// What it should be.
        wanted: &'static str,
    },
    /// The file is still being opened.
    #[error("{path} is still being opened: ask again when /api/files says that it is ready")]
    Opening {
        /// Which file.
        path: String,
    },
    /// The session has ended.
    #[error("the session does not run any more: its file stays as it is")]
    Ended,
    /// The file is shorter than it was.
    #[error("{path} has shrunk from {was_bytes} to {is_bytes} bytes since it was opened: open it again")]
    Shrunk {
        /// Which file.
        path: String,
        /// When it was opened.
        was_bytes: u64,
        /// Now.
        is_bytes: u64,
    },
    /// The file cannot be used.
    #[error("{path}: {message}")]
    Unusable {
        /// Which file.
        path: String,
        /// Why.
        message: String,
        /// Where in the file.
        offset: Option<u64>,
    },
    /// Nobody waits for the answer any more.
    #[error("the request was given up")]
    GivenUp,
    /// A query failed.
    #[error(transparent)]
    Query(heapr_query::Error),
    /// The socket cannot be opened.
    #[error("cannot listen on 127.0.0.1, port {port}: {source}")]
    Listen {
        /// As asked; 0: any.
        port: u16,
        /// Why.
        source: std::io::Error,
    },
    /// The random token cannot be made.
    #[error("the system gives no random bytes: {0}")]
    NoRandomness(std::io::Error),
    /// The server cannot run.
    #[error("the server cannot run: {0}")]
    Run(std::io::Error),
    /// A bug: an answer could not be written, or a thread has panicked.
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
        Self::BadRequest { field: Some(field), message: message.into() }
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

    /// The body that tells it.
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
            Self::BadRequest { field, .. } => *field,
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
