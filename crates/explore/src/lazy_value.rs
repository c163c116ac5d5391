//! A value that is computed when first needed. Concurrent callers wait; a cancelled attempt leaves
//! no value.

use std::sync::{Mutex, OnceLock, PoisonError};

/// A value that is computed when first needed.
#[derive(Debug)]
pub(crate) struct LazyValue<T> {
    value: OnceLock<T>,
    making: Mutex<()>,
}

impl<T> Default for LazyValue<T> {
    fn default() -> Self {
        Self { value: OnceLock::new(), making: Mutex::new(()) }
    }
}

impl<T> LazyValue<T> {
    /// The value, if it is computed.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// Returns the value, computing it if needed.
    ///
    /// # Errors
    /// The errors of `make`.
    pub(crate) fn try_get<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let made = make()?;
        Ok(self.value.get_or_init(|| made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_not_kept_and_a_value_is() {
        let once = LazyValue::default();
        assert_eq!(once.try_get(|| Err("given up")), Err("given up"));
        assert_eq!(once.try_get::<()>(|| Ok(5)), Ok(&5));
        assert_eq!(once.try_get::<()>(|| Ok(6)), Ok(&5));
    }
}
