//! Work on a range of items, spread over processors.

use std::ops::Range;

use heapr_query::Result;

/// Settings for spreading work. The caller sets the number of processors, because a query knows
/// nothing of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallelism {
    /// Largest number of threads at once.
    pub threads: usize,
    /// Least number of items per thread, so that a thread is worth its start (some ten
    /// microseconds).
    pub least: usize,
    /// Number of items whose sums are cached as one block: a block is examined in some ten
    /// microseconds.
    pub block: usize,
}

/// Number of events in a block: its columns fit the first two caches.
const BLOCK: usize = 1 << 12;

impl Default for Parallelism {
    /// All work on the caller's thread.
    fn default() -> Self {
        Self { threads: 1, least: usize::MAX, block: BLOCK }
    }
}

impl Parallelism {
    /// Work spread over `threads` threads.
    #[must_use]
    pub fn over(threads: usize) -> Self {
        Self { threads, least: 1 << 16, block: BLOCK }
    }

    /// Variant for items each of which is worth a thread.
    pub(crate) fn each(self) -> Self {
        Self { least: 1, ..self }
    }

    /// The parts of a range.
    fn parts(self, range: &Range<usize>) -> Vec<Range<usize>> {
        let count = range.len();
        let parts = (count / self.least.max(1)).clamp(1, self.threads.max(1));
        // Computed in 128 bits, because the product may exceed `usize`.
        let border = |part: usize| range.start + (count as u128 * part as u128 / parts as u128) as usize;
        (0..parts).map(|part| border(part)..border(part + 1)).collect()
    }

    /// Calls `work` for each part of a range; the results are in the order of the parts.
    ///
    /// # Errors
    /// The errors of `work`.
    pub(crate) fn map<T: Send>(
        self,
        range: Range<usize>,
        work: impl Fn(Range<usize>) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let mut parts = self.parts(&range);
        let own = parts.pop().unwrap_or(range);
        if parts.is_empty() {
            return Ok(vec![work(own)?]);
        }
        std::thread::scope(|scope| {
            let work = &work;
            let others: Vec<_> = parts.into_iter().map(|part| scope.spawn(move || work(part))).collect();
            let own = work(own);
            let mut results = Vec::new();
            for other in others {
                // A panic in a part is passed on.
                results.push(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
            }
            results.push(own?);
            Ok(results)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_the_whole_in_order() {
        for (threads, least, count) in [(3, 1, 10), (4, 100, 10), (7, 2, 13), (2, 1, 0), (0, 0, 5)] {
            let parallelism = Parallelism { threads, least, ..Parallelism::default() };
            let parts = parallelism.map(5..5 + count, |part| Ok(part.collect::<Vec<_>>())).unwrap();
            assert_eq!(parts.concat(), (5..5 + count).collect::<Vec<_>>(), "{parallelism:?}");
            assert!(parts.len() <= threads.max(1));
        }
    }

    #[test]
    fn an_error_of_any_part_is_the_whole_s() {
        let parallelism = Parallelism { threads: 4, least: 1, ..Parallelism::default() };
        let outcome = parallelism
            .map(0..8, |part| if part.contains(&3) { Err(heapr_query::Error::GivenUp) } else { Ok(()) });
        assert!(outcome.is_err());
    }
}
