//! Cumulative histograms at regular positions in the order of allocation. The histogram of a range
//! is the difference of two of them, plus the allocations at its ends.
//!
//! Lifetimes are stored only for allocations that end in the trace, with their final values.
//! Allocations that are alive at the end of a range are younger there. They are corrected when the
//! range is known.

use std::ops::Range;

use heapr_query::engine::HistogramCounter;
use heapr_query::{Error, HistogramOf, Result};

use crate::event_table::EventTable;
use crate::lifetime_column::{LifetimeColumn, bits_of};
use crate::parallelism::Parallelism;

/// Number of positions: each takes 6 KB.
const PLACES: usize = 512;

/// Histograms of sizes and of lifetimes.
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

/// Cumulative histograms at regular positions.
#[derive(Debug)]
pub(crate) struct BitSums {
    every: usize,
    /// Histograms at each position: `n` covers the allocations before `n * every`.
    places: Vec<Histograms>,
}

impl BitSums {
    /// Computes the histograms. The sum of all sizes must fit 64 bits.
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
