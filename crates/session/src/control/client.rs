//! Client of sessions: lists them, and asks one of them.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::listener::read_line;
use super::name_lock::{SOCKET, is_running};
use super::protocol::{ANSWER_BYTES_MAX, Answer, AnswerLine, PROTOCOL_VERSION, Request, RequestLine};
use crate::SessionName;
use crate::failure::{Failure, FailureKind};
use crate::runtime_directory::RuntimeDirectory;

/// Longest wait for the answer to a stop: a long file's summary may have to be written. Other
/// requests are answered between two rounds.
const STOP_PATIENCE: Duration = Duration::from_secs(600);
/// Longest wait for other answers: an attach waits some seconds for a moment at which the target
/// can be stopped.
const PATIENCE: Duration = Duration::from_secs(60);

/// Running session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEntry {
    /// Name of the session.
    pub name: String,
    /// Path of its socket.
    pub socket: PathBuf,
}

/// Reason for which a session could not be asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No session has that name.
    #[error("no session named {name} is running{}", others(running))]
    NoSuchSession {
        /// Requested name.
        name: String,
        /// Names of the running sessions.
        running: Vec<String>,
    },
    /// Socket that belongs to another user.
    #[error("the socket of session {name} belongs to user {uid}: not used")]
    ForeignSocket {
        /// Name of the session.
        name: String,
        /// User who listens on the socket.
        uid: u32,
    },
    /// Session that does not answer.
    #[error("session {name} does not answer: {reason}")]
    NoAnswer {
        /// Name of the session.
        name: String,
        /// Cause.
        reason: String,
    },
    /// Failure reported by the session.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl ClientError {
    /// Kind of the error.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::NoSuchSession { .. } => FailureKind::NoSuchSession,
            Self::ForeignSocket { .. } => FailureKind::NoPermission,
            Self::NoAnswer { .. } => FailureKind::Protocol,
            Self::Failed(failure) => failure.kind,
        }
    }
}

fn others(running: &[String]) -> String {
    if running.is_empty() {
        "; start one with `heapr start`".to_owned()
    } else {
        format!("; running: {}", running.join(", "))
    }
}

/// Lists this user's running sessions, by name. Removes files that killed sessions left.
#[must_use]
pub fn sessions() -> Vec<SessionEntry> {
    let mut found: Vec<SessionEntry> = Vec::new();
    for directory in RuntimeDirectory::existing() {
        for name in directory.names(SOCKET) {
            let is_new = found.iter().all(|known| known.name != name);
            if is_new && SessionName::new(&name).is_ok() && is_running(&directory, &name) {
                found.push(SessionEntry { socket: directory.path().join(format!("{name}{SOCKET}")), name });
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// Connection to one session.
#[derive(Debug)]
pub struct SessionClient {
    name: SessionName,
    directory: RuntimeDirectory,
}

impl SessionClient {
    /// Finds a session.
    ///
    /// # Errors
    /// No session of that name runs.
    pub fn find(name: &SessionName) -> Result<Self, ClientError> {
        let directory =
            RuntimeDirectory::existing().into_iter().find(|directory| is_running(directory, name.as_str()));
        match directory {
            Some(directory) => Ok(Self { name: name.clone(), directory }),
            None => Err(ClientError::NoSuchSession {
                name: name.to_string(),
                running: sessions().into_iter().map(|entry| entry.name).collect(),
            }),
        }
    }

    /// Name of the session.
    #[must_use]
    pub fn name(&self) -> &SessionName {
        &self.name
    }

    /// Path of its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join(format!("{}{SOCKET}", self.name))
    }

    /// Sends a request, and waits for the answer.
    ///
    /// # Errors
    /// The session does not answer, or reports a failure.
    pub fn ask(&self, request: Request) -> Result<Answer, ClientError> {
        let patience = match &request {
            Request::Stop | Request::Cancel => STOP_PATIENCE,
            // The process's memory is searched, and then the graph is written.
            Request::Snapshot { graph: Some(graph), .. } => graph.max_pause.saturating_add(STOP_PATIENCE),
            _ => PATIENCE,
        };
        self.ask_within(request, patience).map_err(|error| match error {
            // One that ends while it is asked hangs up, and removes its socket.
            ClientError::NoAnswer { .. } if !is_running(&self.directory, self.name.as_str()) => {
                ClientError::NoSuchSession { name: self.name.to_string(), running: Vec::new() }
            }
            error => error,
        })
    }

    /// Sends a request, and waits up to `patience` for the answer.
    pub(super) fn ask_within(&self, request: Request, patience: Duration) -> Result<Answer, ClientError> {
        let no_answer = |reason: String| ClientError::NoAnswer { name: self.name.to_string(), reason };
        let path = self.directory.entry(&format!("{}{SOCKET}", self.name));
        let mut stream = UnixStream::connect(path).map_err(|error| no_answer(error.to_string()))?;
        let peer =
            rustix::net::sockopt::socket_peercred(&stream).map_err(|error| no_answer(error.to_string()))?;
        if peer.uid != rustix::process::geteuid() && !peer.uid.is_root() {
            return Err(ClientError::ForeignSocket { name: self.name.to_string(), uid: peer.uid.as_raw() });
        }
        let line = RequestLine { heapr: PROTOCOL_VERSION, request };
        let mut text = serde_json::to_vec(&line).map_err(|error| no_answer(error.to_string()))?;
        text.push(b'\n');
        let _ = stream.set_write_timeout(Some(PATIENCE));
        stream.write_all(&text).map_err(|error| no_answer(error.to_string()))?;
        let line = read_line(&stream, ANSWER_BYTES_MAX, patience)
            .map_err(|reason| no_answer(format!("the answer {reason}")))?;
        let line: AnswerLine = serde_json::from_slice(&line)
            .map_err(|error| no_answer(format!("the answer makes no sense: {error}")))?;
        match line.answer {
            Answer::Failed(failure) => Err(failure.into()),
            answer => Ok(answer),
        }
    }
}
