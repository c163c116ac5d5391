//! The allocations that a course counts: a bit for each, found in one pass over the columns, so that the pass over the moves –
//! which looks at allocations in no order – loads a bit and not five columns.

use super::event_table::EventTable;
use super::lifetime_column::{LifetimeColumn, LifetimeTest, bits_of};
use super::spread::Spread;
use crate::error::{Error, Result};
use crate::filter::Filter;

/// Words between two questions whether it was given up.
const CANCEL_INTERVAL: usize = 1 << 12;

/// See the module.
#[derive(Debug)]
pub(super) struct Passing {
    /// `None`: all pass.
    words: Option<Vec<u64>>,
}

/// Of what the bits are found.
pub(super) struct PassingQuery<'a> {
    pub(super) table: &'a EventTable,
    /// Without range, moment and type.
    pub(super) filter: &'a Filter,
    /// By site: whether the filter lets it pass; `None`: all.
    pub(super) sites: Option<&'a [bool]>,
    /// There if lifetimes are asked for.
    pub(super) lifetimes: Option<&'a LifetimeColumn>,
    pub(super) duration_ns: u64,
    pub(super) spread: Spread,
    pub(super) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Passing {
    /// Whether an allocation counts.
    #[inline(always)]
    pub(super) fn has(&self, allocation: usize) -> bool {
        self.words.as_ref().is_none_or(|words| words[allocation / 64] >> (allocation % 64) & 1 != 0)
    }
}

impl PassingQuery<'_> {
    /// Makes the pass.
    pub(super) fn run(&self) -> Result<Passing> {
        let filter = self.filter;
        let is_plain = filter.size.is_none() && filter.lifetime.is_none() && !filter.is_temporary_only;
        if is_plain && self.sites.is_none() {
            return Ok(Passing { words: None });
        }
        let count = self.table.allocation_count();
        let lifetime = filter.lifetime.map(LifetimeTest::new);
        let parts = self.spread.map(0..count, |part| {
            // Words are not cut in two: each belongs to the part that begins before it or with it.
            let numbers = part.start.div_ceil(64)..part.end.div_ceil(64);
            let mut words = Vec::with_capacity(numbers.len());
            for number in numbers {
                if number % CANCEL_INTERVAL == 0 && (self.is_cancelled)() {
                    return Err(Error::GivenUp);
                }
                let first = number * 64;
                let word = (first..(first + 64).min(count)).rev().fold(0, |word, allocation| {
                    word << 1 | u64::from(self.passes(allocation, lifetime.as_ref()))
                });
                words.push(word);
            }
            Ok(words)
        })?;
        Ok(Passing { words: Some(parts.concat()) })
    }

    #[inline(always)]
    fn passes(&self, allocation: usize, lifetime: Option<&LifetimeTest>) -> bool {
        let (table, filter) = (self.table, self.filter);
        if self.sites.is_some_and(|sites| !sites[table.site_of[allocation] as usize])
            || filter.size.is_some_and(|size| !size.contains(table.size_bytes(allocation)))
            || (filter.is_temporary_only && !table.is_temporary(allocation, 0))
        {
            return false;
        }
        let Some(lifetime) = lifetime else { return true };
        let end = table.ends[allocation].sequence();
        if end < table.move_count() {
            let exact = || table.lifetime_ns(allocation, end);
            let bits = self.lifetimes.map_or_else(|| bits_of(exact()), |known| known.bits(allocation));
            lifetime.passes(bits, exact)
        } else {
            let lifetime_ns = self.duration_ns.saturating_sub(table.times.get(table.births[allocation]));
            lifetime.passes(bits_of(lifetime_ns), || lifetime_ns)
        }
    }
}
