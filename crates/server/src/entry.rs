//! An entry of the list of files, with its state.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::Error;
use crate::resident_file::ResidentFile;
use crate::session::{RunningSession, SessionStage};
use crate::snapshot_file::SnapshotFile;
use crate::trace_file::{Identity, TraceFile};

/// Content of an opened file.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Opening,
    Trace(Arc<TraceFile>),
    Snapshot(Arc<SnapshotFile>),
    Resident(Arc<ResidentFile>),
    Failed { message: String, offset: Option<u64> },
}

/// Change of a file since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// The file has vanished; the opened one can still be read.
    Gone,
    /// Another file has the name; the opened one can still be read.
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
    /// Number of openings.
    generation: u32,
    /// Path of the file; a session's file may be moved when it ends.
    path: PathBuf,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) is_snapshot: bool,
    /// Session that writes the file, if the file was opened as a running session.
    pub(crate) session: Option<Arc<RunningSession>>,
    state: Mutex<State>,
}

impl Entry {
    /// Creates an entry that is not opened yet.
    pub(crate) fn new(path: &Path, is_snapshot: bool, session: Option<Arc<RunningSession>>) -> Self {
        // An absolute path stays valid when the working directory changes.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let state = Mutex::new(State { content: Content::Opening, identity: None, generation: 0, path });
        Self { is_snapshot, session, state }
    }

    /// Begins an opening, and returns its number.
    pub(crate) fn begin(&self, identity: Option<Identity>) -> u32 {
        let mut state = self.lock();
        state.identity = identity;
        state.content = Content::Opening;
        state.generation += 1;
        state.generation
    }

    /// Sets the content, unless a later opening has begun.
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

    /// Compares the file with the one that was opened.
    pub(crate) fn change(&self) -> Change {
        let (was, path) = {
            let state = self.lock();
            let Some(was) = state.identity else { return Change::None };
            (was, state.path.clone())
        };
        // The session reports growth and the fate of a file that it still writes.
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

    /// Marks the file as failed.
    pub(crate) fn fail(&self, message: String) {
        self.lock().content = Content::Failed { message, offset: None };
    }

    /// Notes a new path of the same file.
    pub(crate) fn moved(&self, path: PathBuf) {
        self.lock().path = path;
    }

    /// Replaces a session's trace by a newer state.
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
