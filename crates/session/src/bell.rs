//! Sends things to the recording thread and wakes it.

use std::sync::Arc;
use std::sync::mpsc::{SendError, Sender};

use heapr_ring::{Pool, reader};

/// Wakes a session's recorder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bell {
    /// Pool of the session; `None`: the recorder cannot be woken, and acts when its sleep is over.
    pool: Option<Arc<Pool>>,
}

impl Bell {
    /// Creates the bell of the session that reads this pool.
    pub(crate) fn of(pool: Option<Arc<Pool>>) -> Self {
        Self { pool }
    }

    fn ring(&self) {
        if let Some(pool) = &self.pool {
            reader::wake(pool);
        }
    }
}

/// Sender whose receiver is the recorder's thread.
pub(crate) struct Letterbox<T> {
    sender: Sender<T>,
    bell: Bell,
}

// Implemented by hand, because the sent type need not be `Debug` or `Clone`.
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

    /// Sends a thing, and wakes the recorder.
    ///
    /// # Errors
    /// The receiver is gone.
    pub(crate) fn send(&self, thing: T) -> Result<(), SendError<T>> {
        self.sender.send(thing)?;
        self.bell.ring();
        Ok(())
    }
}
