//! Cache of the last few results by key. Each is computed once: requests for a result in progress
//! wait for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::promise::Promise;

/// Cache of results by key.
#[derive(Debug)]
pub(crate) struct ResultCache<K, V> {
    /// Entries, last used at the end.
    entries: Mutex<Vec<(K, Arc<Entry<V>>)>>,
    most: usize,
}

#[derive(Debug)]
struct Entry<V> {
    /// Result of the computation; `None` inside if it failed: each waiting request then computes
    /// anew, and gets the error.
    value: Promise<Option<Arc<V>>>,
    waiting: AtomicUsize,
}

impl<K: PartialEq + Clone, V> ResultCache<K, V> {
    /// Creates a cache of `most` results.
    pub(crate) fn new(most: usize) -> Self {
        Self { entries: Mutex::new(Vec::new()), most }
    }

    /// Whether the cache has a result for `key`, or one in progress.
    pub(crate) fn has(&self, key: &K) -> bool {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().any(|(known, _)| known == key)
    }

    /// Returns the result for `key`. `make` can poll whether it should stop: its argument returns
    /// true when all requests are cancelled.
    pub(crate) fn get(
        &self,
        key: &K,
        cancel: &Cancel,
        make: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Result<V>,
    ) -> Result<Arc<V>> {
        let (entry, is_mine) = {
            let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
            let known = entries.iter().position(|(known, _)| known == key);
            let (entry, is_mine) = match known.map(|at| entries.remove(at).1) {
                Some(entry) => (entry, false),
                None => (Arc::new(Entry { value: Promise::new(), waiting: AtomicUsize::new(0) }), true),
            };
            entries.push((key.clone(), Arc::clone(&entry)));
            if entries.len() > self.most {
                entries.remove(0);
            }
            // Counted under the lock, so that the computing thread does not give up in between.
            entry.waiting.fetch_add(1, Ordering::Relaxed);
            (entry, is_mine)
        };
        let _leaving = Leaving(&entry.waiting);
        if !is_mine {
            return match entry.value.wait(cancel)? {
                Some(value) => Ok(value),
                // The computing request was given up just before, or failed.
                None => make(&|| cancel.is_set()).map(Arc::new),
            };
        }
        let unfinished = Unfinished { kept: self, key, entry: &entry };
        let waiting = &entry.waiting;
        let value = make(&|| cancel.is_set() && waiting.load(Ordering::Relaxed) <= 1)?;
        let value = Arc::new(value);
        entry.value.set(Some(Arc::clone(&value)));
        std::mem::forget(unfinished);
        if cancel.is_set() { Err(Error::GivenUp) } else { Ok(value) }
    }
}

struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Removes an entry that was not finished (error, panic), and wakes its waiting requests.
struct Unfinished<'a, K: PartialEq, V> {
    kept: &'a ResultCache<K, V>,
    key: &'a K,
    entry: &'a Arc<Entry<V>>,
}

impl<K: PartialEq, V> Drop for Unfinished<'_, K, V> {
    fn drop(&mut self) {
        let mut entries = self.kept.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|(key, entry)| key != self.key || !Arc::ptr_eq(entry, self.entry));
        drop(entries);
        self.entry.value.set(None);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;

    use super::*;

    #[test]
    fn each_result_is_made_once_and_the_oldest_are_forgotten() {
        let kept: ResultCache<u32, u32> = ResultCache::new(2);
        let made = AtomicU32::new(0);
        let get = |key| {
            let cancel = Cancel::default();
            *kept.get(&key, &cancel, |_| Ok(key * 10 + made.fetch_add(1, Ordering::Relaxed))).unwrap()
        };
        assert_eq!([get(1), get(2), get(1)], [10, 21, 10]);
        assert_eq!([get(3), get(1), get(2)], [32, 10, 23]);
    }

    #[test]
    fn an_error_is_not_kept() {
        let kept: ResultCache<u32, u32> = ResultCache::new(2);
        let cancel = Cancel::default();
        assert!(kept.get(&1, &cancel, |_| Err(Error::GivenUp)).is_err());
        assert_eq!(*kept.get(&1, &cancel, |_| Ok(5)).unwrap(), 5);
    }

    #[test]
    fn two_who_ask_at_once_share_one_result_and_one_may_leave() {
        let kept: ResultCache<u32, u32> = ResultCache::new(2);
        let (first, second) = (Cancel::default(), Cancel::default());
        let started = Promise::new();
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| {
                kept.get(&1, &first, |is_cancelled| {
                    started.set(());
                    // The second request comes, then the first one's client goes.
                    while !first.is_set() {
                        std::thread::yield_now();
                    }
                    assert!(!is_cancelled(), "somebody still waits");
                    Ok(7)
                })
                .is_err()
            });
            started.wait(&Cancel::default()).unwrap();
            let waiter = scope.spawn(|| *kept.get(&1, &second, |_| panic!("it is being made")).unwrap());
            while kept.entries.lock().unwrap()[0].1.waiting.load(Ordering::Relaxed) < 2 {
                std::thread::yield_now();
            }
            drop(first.guard());
            assert!(maker.join().unwrap());
            assert_eq!(waiter.join().unwrap(), 7);
        });
    }
}
