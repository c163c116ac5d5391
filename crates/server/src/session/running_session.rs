//! What is known of a session that was opened while it ran.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use heapr_session::{Answer, ClientError, Request, SessionClient, SessionName, SessionState, SessionStatus};
use serde::Serialize;
use serde_json::{Value, json};

use super::history::History;

/// How far it is.
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
    /// Whether there is a recorder to be asked.
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
    /// Until when the events are that are shown.
    shown_until_ns: u64,
    /// Why the last look failed.
    trouble: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RunningSession {
    name: SessionName,
    known: Mutex<Known>,
    /// Whether somebody has asked since the file was read last.
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

    /// Asks the recorder.
    pub(crate) fn ask(&self, request: Request) -> Result<Answer, ClientError> {
        SessionClient::find(&self.name)?.ask(request)
    }

    pub(crate) fn stage(&self) -> SessionStage {
        self.lock().stage
    }

    /// Asks how it stands, and notes it.
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

    /// There is no recorder any more.
    pub(crate) fn note_end(&self, stage: SessionStage) {
        let mut known = self.lock();
        known.stage = stage;
        known.status = None;
        known.trouble = None;
    }

    pub(crate) fn note_shown(&self, until_ns: u64) {
        self.lock().shown_until_ns = until_ns;
    }

    /// Somebody asks for what is shown.
    pub(crate) fn note_interest(&self) {
        // Relaxed: it only delays or spares a reading.
        self.has_interest.store(true, Ordering::Relaxed);
    }

    /// Whether somebody has asked since the last call.
    pub(crate) fn take_interest(&self) -> bool {
        self.has_interest.swap(false, Ordering::Relaxed)
    }

    /// For `/api/files`.
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

    /// For `/api/session/status`.
    pub(crate) fn history(&self) -> Value {
        let known = self.lock();
        json!({
            "schema": "heapr.view.session.status/1",
            "state": known.stage.name(),
            "status": known.status.as_ref().map(status_json),
            "history": known.history.thinned(),
        })
    }
}

/// A session that is looked at.
#[derive(Debug, Serialize)]
pub(crate) struct SessionFacts {
    name: String,
    state: &'static str,
    shown_until_ns: u64,
    trouble: Option<String>,
    /// As `heapr status --format json` has it.
    status: Option<Value>,
}

/// A session's entry of `heapr status --format json`.
#[must_use]
pub fn status_json(status: &SessionStatus) -> Value {
    let mut value = serde_json::to_value(status).unwrap_or_default();
    // A path as text: JSON has no bytes.
    value["output"] = json!(status.output.to_string_lossy());
    value
}
