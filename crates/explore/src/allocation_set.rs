//! Set of the allocations that a timeline counts: a bit for each, computed in one pass over the
//! columns. The pass over the moves accesses allocations in random order. It then loads a bit
//! instead of five columns.

use std::ops::Range;

use heapr_query::{Error, Filter, Result};

use crate::event_table::{EventTable, Move};
use crate::lifetime_column::{LifetimeColumn, LifetimeTest, class_of};
use crate::parallelism::Parallelism;

/// Number of words between two checks for cancellation.
const CANCEL_INTERVAL: usize = 1 << 12;

/// Set of the allocations that pass a filter.
#[derive(Debug)]
pub(crate) struct AllocationSet {
    /// A bit per allocation; `None` if all pass.
    words: Option<Vec<u64>>,
}

/// Inputs from which the bits are computed.
pub(crate) struct AllocationSetQuery<'a> {
    pub(crate) table: &'a EventTable,
    /// Filter without range, moment and type.
    pub(crate) filter: &'a Filter,
    /// Whether each site passes the filter; `None` if all do.
    pub(crate) sites: Option<&'a [bool]>,
    /// Lifetimes, if the filter needs them.
    pub(crate) lifetimes: Option<&'a LifetimeColumn>,
    pub(crate) duration_ns: u64,
    pub(crate) parallelism: Parallelism,
    pub(crate) is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl AllocationSet {
    /// Whether a filter tests single allocations, independent of time. Then the set is computed
    /// once, for all views.
    pub(crate) fn is_worth(filter: &Filter) -> bool {
        let is_timeless = filter.range.is_none() && filter.at.is_none() && filter.allocation_type.is_none();
        is_timeless && (filter.size.is_some() || filter.lifetime.is_some() || filter.is_temporary_only)
    }

    /// Whether an allocation is in the set.
    #[inline(always)]
    pub(crate) fn has(&self, allocation: usize) -> bool {
        self.words.as_ref().is_none_or(|words| words[allocation / 64] >> (allocation % 64) & 1 != 0)
    }
}

impl AllocationSet {
    /// Bits for the allocations of up to 64 moves; the first move has the lowest bit.
    #[inline(always)]
    pub(crate) fn bits(&self, moves: &[Move]) -> u64 {
        match &self.words {
            None => u64::MAX >> (64 - moves.len()),
            Some(words) => bits(moves, |_, one: &Move| {
                let allocation = one.allocation();
                words[allocation / 64] >> (allocation % 64) & 1 != 0
            }),
        }
    }

    /// Passes the allocations of a range that are in the set to `visit`, in order.
    #[inline(always)]
    pub(crate) fn for_each(&self, allocations: Range<usize>, mut visit: impl FnMut(usize)) {
        let Some(words) = &self.words else { return allocations.for_each(visit) };
        let mut first = allocations.start;
        while first < allocations.end {
            let end = (first / 64 * 64 + 64).min(allocations.end);
            // The bits from `first` up to `end`.
            let mut word = words[first / 64] >> (first % 64) & (u64::MAX >> (64 - (end - first)));
            while word != 0 {
                visit(first + word.trailing_zeros() as usize);
                word &= word - 1;
            }
            first = end;
        }
    }
}

impl AllocationSetQuery<'_> {
    /// Computes the set.
    pub(crate) fn run(&self) -> Result<AllocationSet> {
        let filter = self.filter;
        let is_plain = filter.size.is_none() && filter.lifetime.is_none() && !filter.is_temporary_only;
        if is_plain && self.sites.is_none() {
            return Ok(AllocationSet { words: None });
        }
        let count = self.table.allocation_count();
        let lifetime = filter.lifetime.map(LifetimeTest::new);
        let parts = self.parallelism.map(0..count, |part| {
            // Words are not split: each belongs to the part that begins before it or with it.
            let numbers = part.start.div_ceil(64)..part.end.div_ceil(64);
            let mut words = Vec::with_capacity(numbers.len());
            for number in numbers {
                if number % CANCEL_INTERVAL == 0 && (self.is_cancelled)() {
                    return Err(Error::GivenUp);
                }
                let first = number * 64;
                let word = self.word(first..(first + 64).min(count), lifetime.as_ref());
                words.push(word);
            }
            Ok(words)
        })?;
        Ok(AllocationSet { words: Some(parts.concat()) })
    }

    /// The bits of up to 64 allocations, one criterion after the other: each is a short loop over
    /// one column.
    #[inline(always)]
    fn word(&self, allocations: Range<usize>, lifetime: Option<&LifetimeTest>) -> u64 {
        let (table, filter) = (self.table, self.filter);
        let mut word = u64::MAX >> (64 - allocations.len());
        if let Some(sites) = self.sites {
            word &= bits(&table.site_of[allocations.clone()], |_, &site| sites[site as usize]);
        }
        if let Some(size) = filter.size {
            let first = allocations.start;
            word &=
                bits(&table.ends[allocations.clone()], |at, _| size.contains(table.size_bytes(first + at)));
        }
        if filter.is_temporary_only {
            let first = allocations.start;
            word &= bits(&table.ends[allocations.clone()], |at, end| {
                end.is_temporary() && table.is_temporary(first + at, 0)
            });
        }
        if let Some(lifetime) = lifetime {
            let first = allocations.start;
            word &= match self.lifetimes {
                Some(known) => {
                    lifetime.passing(known.classes(allocations), |at| self.lifetime_ns(first + at))
                }
                None => bits(&table.ends[allocations], |at, _| {
                    let lifetime_ns = self.lifetime_ns(first + at);
                    lifetime.passes(class_of(lifetime_ns), || lifetime_ns)
                }),
            };
        }
        word
    }

    /// Lifetime of an allocation, until the end of the trace if it was not freed.
    #[inline(always)]
    fn lifetime_ns(&self, allocation: usize) -> u64 {
        let table = self.table;
        let end = table.ends[allocation].sequence();
        if end < table.move_count() {
            table.lifetime_ns(allocation, end)
        } else {
            self.duration_ns.saturating_sub(table.times.get(table.births[allocation]))
        }
    }
}

/// A bit for each of up to 64 values; the first value has the lowest bit.
#[inline(always)]
fn bits<T>(values: &[T], passes: impl Fn(usize, &T) -> bool) -> u64 {
    values.iter().enumerate().fold(0, |word, (at, value)| word | u64::from(passes(at, value)) << at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shows_the_set_bits_of_any_part(words in prop::collection::vec(any::<u64>(), 1..5), from in 0..320_usize, to in 0..320_usize) {
            let count = words.len() * 64;
            let part = from.min(count)..to.min(count).max(from.min(count));
            let passing = AllocationSet { words: Some(words) };
            let mut shown = Vec::new();
            passing.for_each(part.clone(), |allocation| shown.push(allocation));
            prop_assert_eq!(shown, part.filter(|&allocation| passing.has(allocation)).collect::<Vec<_>>());
        }
    }
}
