//! One of the files, and what is known of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;
use crate::resident_file::ResidentFile;
use crate::session::{RunningSession, SessionStage};
use crate::snapshot_file::SnapshotFile;
use crate::trace_file::{Identity, TraceFile};

/// What a file is.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Opening,
    Trace(Arc<TraceFile>),
    Snapshot(Arc<SnapshotFile>),
    Resident(Arc<ResidentFile>),
    Failed { message: String, offset: Option<u64> },
}

/// Whether the file is still what was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// It has vanished: what was opened can still be read.
    Gone,
    /// Another file has its name: what was opened can still be read.
    Replaced,
    Shrunk {
        was_bytes: u64,
        is_bytes: u64,
    },
    Grown,
}

#[derive(Debug)]
struct State {
    content: Content,
    identity: Option<Identity>,
    /// Counts openings.
    generation: u32,
    /// Where it is; a session's file may be moved when it ends.
    path: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) is_snapshot: bool,
    /// What writes it, if it was opened as a session that runs.
    pub(crate) session: Option<Arc<RunningSession>>,
    state: Mutex<State>,
}

impl Entry {
    /// One that is not opened yet.
    pub(crate) fn new(path: &Path, is_snapshot: bool, session: Option<Arc<RunningSession>>) -> Self {
        // The same file whatever the working directory becomes.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let state = Mutex::new(State { content: Content::Opening, identity: None, generation: 0, path });
        Self { is_snapshot, session, state }
    }

    /// It is opened, once more perhaps: gives the number of the opening.
    pub(crate) fn begin(&self, identity: Option<Identity>) -> u32 {
        let mut state = self.lock();
        state.identity = identity;
        state.content = Content::Opening;
        state.generation += 1;
        state.generation
    }

    /// What it was opened as, unless another opening has begun since.
    pub(crate) fn opened(&self, generation: u32, content: Content) {
        let mut state = self.lock();
        if state.generation == generation {
            state.content = content;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.lock().path.clone()
    }

    pub(crate) fn content(&self) -> Content {
        self.lock().content.clone()
    }

    pub(crate) fn generation(&self) -> u32 {
        self.lock().generation
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.lock().identity.map_or(0, |identity| identity.bytes)
    }

    /// Looks at the file again.
    pub(crate) fn change(&self) -> Change {
        let (was, path) = {
            let state = self.lock();
            let Some(was) = state.identity else { return Change::None };
            (was, state.path.clone())
        };
        // What grows while it is written, and what becomes of it then, the session tells.
        let is_written = self.session.as_ref().is_some_and(|session| session.stage() != SessionStage::Ended);
        match Identity::of(&path) {
            _ if is_written => Change::None,
            Err(_) => Change::Gone,
            Ok(is) if !is.is_same_file(&was) => Change::Replaced,
            Ok(is) if is.bytes < was.bytes => Change::Shrunk { was_bytes: was.bytes, is_bytes: is.bytes },
            Ok(is) if is.bytes > was.bytes => Change::Grown,
            Ok(_) => Change::None,
        }
    }

    pub(crate) fn unusable(&self, message: String, offset: Option<u64>) -> Error {
        Error::Unusable { path: self.path().display().to_string(), message, offset }
    }

    /// There is nothing to be shown.
    pub(crate) fn fail(&self, message: String) {
        self.lock().content = Content::Failed { message, offset: None };
    }

    /// Another name of the same file.
    pub(crate) fn moved(&self, path: PathBuf) {
        self.lock().path = path;
    }

    /// Shows a newer state of a session's file.
    pub(crate) fn show(&self, path: PathBuf, identity: Identity, trace: Arc<TraceFile>) {
        let mut state = self.lock();
        if let Content::Trace(before) = &state.content {
            before.close();
        }
        state.content = Content::Trace(trace);
        state.identity = Some(identity);
        state.path = path;
        state.generation += 1;
    }
}
