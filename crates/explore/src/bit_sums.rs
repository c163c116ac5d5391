//! Histograms up to regular places in the order of allocation: those of any range from two of them
//! and what lies at its ends.
//!
//! Of lifetimes only those that end in the trace are kept, as they are in the end; what is alive at
//! the end of a range is younger there, and is put in its place when the range is known.

use std::ops::Range;

use heapr_query::engine::HistogramCounter;
use heapr_query::{Error, HistogramOf, Result};

use crate::event_table::EventTable;
use crate::lifetime_column::{LifetimeColumn, bits_of};
use crate::parallelism::Parallelism;

/// Places: each takes 6 KB.
const PLACES: usize = 512;

/// Of sizes and of lifetimes.
#[derive(Debug, Clone)]
pub(crate) struct Histograms {
    pub(crate) sizes: HistogramCounter,
    pub(crate) lifetimes: HistogramCounter,
}

impl Histograms {
    pub(crate) fn new() -> Self {
        Self {
            sizes: HistogramCounter::new(HistogramOf::Size),
            lifetimes: HistogramCounter::new(HistogramOf::Lifetime),
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.sizes.merge(&other.sizes);
        self.lifetimes.merge(&other.lifetimes);
    }

    fn count(&mut self, table: &EventTable, lifetimes: &LifetimeColumn, allocation: usize) {
        let size_bytes = table.size_bytes(allocation);
        self.sizes.add_to(bits_of(size_bytes), size_bytes, false);
        if table.ends[allocation].sequence() < table.move_count() {
            self.lifetimes.add_to(lifetimes.bits(allocation), size_bytes, false);
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct BitSums {
    every: usize,
    /// Place `n` is behind allocation `n * every`.
    places: Vec<Histograms>,
}

impl BitSums {
    /// The sizes of all allocations must fit 64 bits.
    pub(crate) fn new(
        table: &EventTable,
        lifetimes: &LifetimeColumn,
        parallelism: Parallelism,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self> {
        let count = table.allocation_count();
        let every = (count / PLACES + 1).max(parallelism.block);
        let parts = parallelism.each().map(0..count / every, |places| {
            let each = places.map(|place| {
                if is_cancelled() {
                    return Err(Error::GivenUp);
                }
                let mut sums = Histograms::new();
                (place * every..(place + 1) * every)
                    .for_each(|allocation| sums.count(table, lifetimes, allocation));
                Ok(sums)
            });
            each.collect::<Result<Vec<_>>>()
        })?;
        let mut places = vec![Histograms::new()];
        for sums in parts.into_iter().flatten() {
            let mut next = sums;
            places.last().iter().for_each(|before| next.merge(before));
            places.push(next);
        }
        Ok(Self { every, places })
    }

    /// Sizes of a range of allocations, and the lifetimes of those that end in the trace.
    pub(crate) fn totals(
        &self,
        table: &EventTable,
        lifetimes: &LifetimeColumn,
        allocations: Range<usize>,
    ) -> Histograms {
        let first = allocations.start.div_ceil(self.every);
        let last = (allocations.end / self.every).min(self.places.len() - 1);
        let mut sums = Histograms::new();
        let mut scan = |allocations: Range<usize>| {
            allocations.for_each(|allocation| sums.count(table, lifetimes, allocation));
        };
        if first >= last {
            scan(allocations);
            return sums;
        }
        scan(allocations.start..first * self.every);
        scan(last * self.every..allocations.end);
        sums.merge(&self.places[last]);
        sums.sizes.subtract(&self.places[first].sizes);
        sums.lifetimes.subtract(&self.places[first].lifetimes);
        sums
    }
}
