//! Whether somebody still waits for an answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Asked by the work.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Whether nobody waits any more.
    #[must_use]
    pub(crate) fn is_set(&self) -> bool {
        // Relaxed: no data hangs on it; it may be seen a little later.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::GivenUp) } else { Ok(()) }
    }

    /// Sets it when it is dropped: hyper drops what answers a client that has gone.
    pub(crate) fn guard(&self) -> CancelGuard {
        CancelGuard(self.clone())
    }
}

/// See [`Cancel::guard`].
#[derive(Debug)]
pub(crate) struct CancelGuard(Cancel);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
