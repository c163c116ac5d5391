//! Cache of the last few results by key.

use std::sync::{Arc, Mutex, PoisonError};

/// Number of cached results: a page has a filter bar and sometimes a comparison.
const KEPT: usize = 4;

/// Cache of the last few results by key.
#[derive(Debug)]
pub(crate) struct RecentResults<K, V> {
    known: Mutex<Vec<(K, Arc<V>)>>,
    /// Held while a result is computed: the panels of a page request the same one at the same time.
    making: Mutex<()>,
}

impl<K, V> Default for RecentResults<K, V> {
    fn default() -> Self {
        Self { known: Mutex::new(Vec::new()), making: Mutex::new(()) }
    }
}

impl<K: PartialEq + Clone, V> RecentResults<K, V> {
    /// The result for `key`. Concurrent callers wait while one computes. `make` must not request a
    /// result of the same cache.
    pub(crate) fn get(&self, key: &K, make: impl FnOnce() -> V) -> Arc<V> {
        match self.try_get::<std::convert::Infallible>(key, || Ok(make())) {
            Ok(made) => made,
            Err(never) => match never {},
        }
    }

    /// Variant of [`RecentResults::get`] for fallible work; an error is not cached.
    ///
    /// # Errors
    /// The errors of `make`.
    pub(crate) fn try_get<E>(&self, key: &K, make: impl FnOnce() -> Result<V, E>) -> Result<Arc<V>, E> {
        if let Some(known) = self.find(key) {
            return Ok(known);
        }
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = self.find(key) {
            return Ok(known);
        }
        let made = Arc::new(make()?);
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == KEPT {
            all.remove(0);
        }
        all.push((key.clone(), Arc::clone(&made)));
        Ok(made)
    }

    fn find(&self, key: &K) -> Option<Arc<V>> {
        let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(known, _)| known == key).map(|(_, known)| Arc::clone(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_few_are_made_once() {
        let results = RecentResults::default();
        let get = |key: usize| *results.get(&key, || key * 2);
        assert!((0..10).all(|key| get(key) == key * 2));
        assert_eq!(*results.get(&9, || panic!("it is known")), 18);
        assert_eq!(*results.get(&0, || 7), 7, "the oldest was forgotten");
    }

    #[test]
    fn many_who_ask_at_once_share_one_result() {
        let results = RecentResults::default();
        let made = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    results.get(&1, || made.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }

    #[test]
    fn after_an_error_the_next_one_makes_it() {
        let results: RecentResults<u32, u32> = RecentResults::default();
        assert_eq!(results.try_get(&1, || Err("given up")), Err("given up"));
        assert_eq!(results.try_get::<()>(&1, || Ok(5)).map(|made| *made), Ok(5));
    }
}
