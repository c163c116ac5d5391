//! A result that one thread makes and others wait for.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::cancel::Cancel;
use crate::error::Result;

/// Interval at which a waiting thread checks for cancellation.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Result that is set once.
#[derive(Debug, Default)]
pub(crate) struct Promise<T> {
    value: Mutex<Option<T>>,
    is_there: Condvar,
}

impl<T: Clone> Promise<T> {
    pub(crate) fn new() -> Self {
        Self { value: Mutex::new(None), is_there: Condvar::new() }
    }

    pub(crate) fn set(&self, value: T) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
        self.is_there.notify_all();
    }

    /// The value, if it is set.
    pub(crate) fn get(&self) -> Option<T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for the value, at most for `most`.
    pub(crate) fn wait_at_most(&self, most: Duration) {
        let value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.is_there.wait_timeout_while(value, most, |value| value.is_none()));
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// Fails if the request was given up.
    pub(crate) fn wait(&self, cancel: &Cancel) -> Result<T> {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(value) = &*value {
                return Ok(value.clone());
            }
            cancel.check()?;
            value =
                self.is_there.wait_timeout(value, LOOK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
