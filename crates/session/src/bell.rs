//! Handing something to the thread that records: it is woken for it.

use std::sync::Arc;
use std::sync::mpsc::{SendError, Sender};

use heapr_ring::{Pool, reader};

/// Wakes a session's recorder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bell {
    /// `None`: nobody can be woken, who is called comes when its sleep is over.
    pool: Option<Arc<Pool>>,
}

impl Bell {
    /// Of the session that reads this pool.
    pub(crate) fn of(pool: Option<Arc<Pool>>) -> Self {
        Self { pool }
    }

    fn ring(&self) {
        if let Some(pool) = &self.pool {
            reader::wake(pool);
        }
    }
}

/// A sender whose receiver is the recorder's thread.
pub(crate) struct Letterbox<T> {
    sender: Sender<T>,
    bell: Bell,
}

// (What is handed in need not be `Debug`, or `Clone`.)
impl<T> std::fmt::Debug for Letterbox<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Letterbox").finish_non_exhaustive()
    }
}

impl<T> Clone for Letterbox<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), bell: self.bell.clone() }
    }
}

impl<T> Letterbox<T> {
    pub(crate) fn new(sender: Sender<T>, bell: Bell) -> Self {
        Self { sender, bell }
    }

    /// Hands it in, and wakes who takes it.
    ///
    /// # Errors
    /// Nobody takes it any more.
    pub(crate) fn send(&self, thing: T) -> Result<(), SendError<T>> {
        self.sender.send(thing)?;
        self.bell.ring();
        Ok(())
    }
}
