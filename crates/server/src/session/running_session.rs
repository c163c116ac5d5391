//! State of a session that was opened while it ran.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use heapr_session::{Answer, ClientError, Request, SessionClient, SessionName, SessionState, SessionStatus};
use serde::Serialize;
use serde_json::{Value, json};

use super::history::History;

/// Stage of a session.
///
/// ```text
///  Recording ──> Full (the file has its size)
///      │          │
///      └────┬─────┘
///           ├──> Ended      the file is complete
///           ├──> Cancelled  the file was removed
///           └──> Lost       neither: the recorder was killed
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionStage {
    Recording,
    Full,
    Ended,
    Cancelled,
    Lost,
}

impl SessionStage {
    /// Whether the recorder runs.
    pub(crate) fn is_running(self) -> bool {
        matches!(self, Self::Recording | Self::Full)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Full => "full",
            Self::Ended => "ended",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }
}

#[derive(Debug)]
struct Known {
    stage: SessionStage,
    status: Option<SessionStatus>,
    history: History,
    /// Time of the recording up to which events are shown.
    shown_until_ns: u64,
    /// Reason why the last status request failed.
    trouble: Option<String>,
}

/// A session that was opened while it ran.
#[derive(Debug)]
pub(crate) struct RunningSession {
    name: SessionName,
    known: Mutex<Known>,
    /// Whether a client has asked since the last reading of the file.
    has_interest: AtomicBool,
}

impl RunningSession {
    pub(crate) fn new(name: SessionName) -> Self {
        let known = Known {
            stage: SessionStage::Recording,
            status: None,
            history: History::default(),
            shown_until_ns: 0,
            trouble: None,
        };
        Self { name, known: Mutex::new(known), has_interest: AtomicBool::new(true) }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request to the recorder.
    pub(crate) fn ask(&self, request: Request) -> Result<Answer, ClientError> {
        SessionClient::find(&self.name)?.ask(request)
    }

    pub(crate) fn stage(&self) -> SessionStage {
        self.lock().stage
    }

    /// Requests the status, and notes it.
    pub(crate) fn look(&self) -> Result<SessionStatus, ClientError> {
        let Answer::Status(status) = self.ask(Request::Status)? else {
            let reason = "the answer is no status".to_owned();
            return Err(ClientError::NoAnswer { name: self.name.to_string(), reason });
        };
        let mut known = self.lock();
        known.history.add(&status);
        known.status = Some((*status).clone());
        known.trouble = None;
        known.stage = match status.state {
            SessionState::Full => SessionStage::Full,
            _ => SessionStage::Recording,
        };
        Ok(*status)
    }

    pub(crate) fn note_trouble(&self, trouble: String) {
        self.lock().trouble = Some(trouble);
    }

    /// Notes the end of the recorder.
    pub(crate) fn note_end(&self, stage: SessionStage) {
        let mut known = self.lock();
        known.stage = stage;
        known.status = None;
        known.trouble = None;
    }

    pub(crate) fn note_shown(&self, until_ns: u64) {
        self.lock().shown_until_ns = until_ns;
    }

    /// Notes that a client asks for the shown state.
    pub(crate) fn note_interest(&self) {
        // Relaxed: it only delays or saves a reading.
        self.has_interest.store(true, Ordering::Relaxed);
    }

    /// Whether a client has asked since the last call; resets the flag.
    pub(crate) fn take_interest(&self) -> bool {
        self.has_interest.swap(false, Ordering::Relaxed)
    }

    /// Facts for `/api/files`.
    pub(crate) fn facts(&self) -> SessionFacts {
        let known = self.lock();
        SessionFacts {
            name: self.name.as_str().to_owned(),
            state: known.stage.name(),
            shown_until_ns: known.shown_until_ns,
            trouble: known.trouble.clone(),
            status: known.status.as_ref().map(status_json),
        }
    }

    /// Answer for `/api/session/status`.
    pub(crate) fn history(&self) -> Value {
        let known = self.lock();
        json!({
            "schema": "heapr.view.session.status/1",
            "state": known.stage.name(),
            "shown_until_ns": known.shown_until_ns,
            "trouble": known.trouble,
            "status": known.status.as_ref().map(status_json),
            "history": known.history.thinned(),
        })
    }
}

/// Facts of a session that a page shows.
#[derive(Debug, Serialize)]
pub(crate) struct SessionFacts {
    name: String,
    state: &'static str,
    shown_until_ns: u64,
    trouble: Option<String>,
    /// Status as `heapr status --format json` writes it.
    status: Option<Value>,
}

/// A session's entry of `heapr status --format json`.
#[must_use]
pub fn status_json(status: &SessionStatus) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    // JSON has no bytes: the path is written as text.
    value["output"] = json!(status.output.to_string_lossy());
    value
}
