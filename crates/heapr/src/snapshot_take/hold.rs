//! Process of which more than one snapshot is taken.
//!
//! V8 forgets the ids of all objects when an inspector session ends, and only snapshots of one
//! session can be compared by id. The session is therefore kept open as long as possible. If the
//! port was open before, that is always. If heapr opened it, that is for one process at a time,
//! because all Node processes want the same port.

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use heapr_inspector::Inspector;

use super::capture::{CaptureArguments, Captured, capture, close, open};
use super::file_name::Destination;

/// Process, and its inspector while that is open.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) pid: u32,
    inspector: Option<Inspector>,
    keeps_session: bool,
}

impl Held {
    /// Creates the value without opening the inspector.
    pub(crate) fn new(pid: u32, keeps_session: bool) -> Self {
        Self { pid, inspector: None, keeps_session }
    }

    /// Returns the inspector, and opens it if necessary.
    pub(crate) fn inspector(
        &mut self,
        arguments: &CaptureArguments,
        is_cancelled: &AtomicBool,
    ) -> anyhow::Result<&mut Inspector> {
        let inspector = match self.inspector.take() {
            Some(inspector) => inspector,
            None => open(self.pid, arguments.open(), is_cancelled)?,
        };
        Ok(self.inspector.insert(inspector))
    }

    /// Captures one snapshot, and those of the workers.
    pub(crate) fn capture(
        &mut self,
        arguments: &CaptureArguments,
        destination: &Destination,
        is_cancelled: &AtomicBool,
    ) -> anyhow::Result<Vec<Captured>> {
        let inspector = self.inspector(arguments, is_cancelled)?;
        let mut captured = Vec::new();
        capture(inspector, arguments, destination, is_cancelled, &mut captured)?;
        Ok(captured)
    }

    /// Ends the session between two snapshots, if it is not kept open.
    pub(crate) fn rest(&mut self) -> anyhow::Result<()> {
        match self.inspector.take_if(|inspector| !self.keeps_session && inspector.was_opened_by_us()) {
            Some(inspector) => close(inspector),
            None => Ok(()),
        }
    }

    /// Listens for a while to a process whose session is kept open; returns whether it is about to
    /// end.
    pub(crate) fn listen(&mut self, until: Instant, is_cancelled: &AtomicBool) -> bool {
        self.inspector.as_mut().is_some_and(|inspector| inspector.rest(until, is_cancelled).is_err())
    }

    /// Closes the session after an error.
    pub(crate) fn close(&mut self) -> anyhow::Result<()> {
        self.inspector.take().map_or(Ok(()), close)
    }
}
