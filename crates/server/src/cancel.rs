//! Cancellation of queries whose client has gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// Flag that running work polls.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Whether the client has gone.
    #[must_use]
    pub(crate) fn is_set(&self) -> bool {
        // Relaxed: the flag guards no data, and may be seen a little later.
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::GivenUp) } else { Ok(()) }
    }

    /// Returns a guard that sets the flag on drop: hyper drops the future that answers a client
    /// that has gone.
    pub(crate) fn guard(&self) -> CancelGuard {
        CancelGuard(self.clone())
    }
}

/// Guard of [`Cancel::guard`].
#[derive(Debug)]
pub(crate) struct CancelGuard(Cancel);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
