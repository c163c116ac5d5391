//! The last few results by what they were made of.

use std::sync::{Arc, Mutex, PoisonError};

/// Results that are kept: a page has a filter bar and now and then a comparison.
const KEPT: usize = 4;

/// See the module.
#[derive(Debug)]
pub(super) struct Remembered<K, V>(Mutex<Vec<(K, Arc<V>)>>);

impl<K, V> Default for Remembered<K, V> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<K: PartialEq + Clone, V> Remembered<K, V> {
    /// The result for `key`. Two who ask at once may both make it: waiting would take as long.
    pub(super) fn get(&self, key: &K, make: impl FnOnce() -> V) -> Arc<V> {
        match self.try_get::<std::convert::Infallible>(key, || Ok(make())) {
            Ok(made) => made,
            Err(never) => match never {},
        }
    }

    /// As [`Remembered::get`]; an error is not remembered.
    ///
    /// # Errors
    /// Those of `make`.
    pub(super) fn try_get<E>(&self, key: &K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = lock().iter().find(|(known, _)| known == key) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(make()?);
        let mut all = lock();
        all.retain(|(known, _)| known != key);
        if all.len() == KEPT {
            all.remove(0);
        }
        all.push((key.clone(), Arc::clone(&made)));
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_few_are_made_once() {
        let remembered = Remembered::default();
        let get = |key: usize| *remembered.get(&key, || key * 2);
        assert!((0..10).all(|key| get(key) == key * 2));
        assert_eq!(*remembered.get(&9, || panic!("it is known")), 18);
        assert_eq!(*remembered.get(&0, || 7), 7, "the oldest was forgotten");
    }
}
