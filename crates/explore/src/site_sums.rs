//! Cumulative sums by site at regular positions in the order of allocation. The sums of a range are
//! the difference of two of them, plus the allocations at its ends.
//!
//! ```text
//! allocations   0 ········ 100k ········ 200k ········ 300k ···
//! stored sums               A             B             C          by site, from 0 on
//! 130k..310k                   [───────────────────────────)
//!                               scanned   +    C − B     + scanned
//! ```
//! With more sites the positions are further apart: the sums take a fraction of the table's memory.

use std::ops::Range;

use heapr_query::{Error, Result};
use heapr_trace::Amounts;

use crate::event_table::EventTable;
use crate::parallelism::Parallelism;

/// Sums of a site; in one cache line, because a scan visits sites in random order.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(crate) struct SiteSums(Amounts);

impl std::ops::Deref for SiteSums {
    type Target = Amounts;

    fn deref(&self) -> &Amounts {
        &self.0
    }
}

impl std::ops::DerefMut for SiteSums {
    fn deref_mut(&mut self) -> &mut Amounts {
        &mut self.0
    }
}

/// Sums of the sites with allocations, in order of sites.
#[derive(Debug, Default)]
pub(crate) struct FoundSums {
    sites: Vec<u32>,
    sums: Vec<SiteSums>,
}

impl FoundSums {
    /// From the sums of all sites.
    pub(crate) fn new(mut by_site: Vec<SiteSums>) -> Self {
        let is_found = |sums: &SiteSums| sums.total_count > 0;
        let sites = (0..).zip(&by_site).filter(|(_, sums)| is_found(sums)).map(|(site, _)| site).collect();
        by_site.retain(is_found);
        by_site.shrink_to_fit();
        Self { sites, sums: by_site }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Numbers of the sites, and their sums.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, &SiteSums)> {
        self.sites.iter().map(|&site| site as usize).zip(&self.sums)
    }
}

/// State of an allocation when it is added to the sums of its site.
pub(crate) struct Fate {
    pub(crate) is_ended: bool,
    pub(crate) is_temporary: bool,
    pub(crate) is_at_peak: bool,
}

/// Sums of a site. Allocation numbers have 31 bits.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Amount {
    bytes: u64,
    count: u32,
    /// Number of allocations that end before their thread allocates again, at any time.
    temporary: u32,
}

impl Amount {
    /// Counts an allocation.
    #[inline(always)]
    pub(crate) fn count(&mut self, table: &EventTable, allocation: usize) {
        self.bytes += table.size_bytes(allocation);
        self.count += 1;
        self.temporary += u32::from(table.ends[allocation].is_temporary());
    }
}

/// Cumulative sums by site at regular positions.
#[derive(Debug)]
pub(crate) struct SitePrefixes {
    /// Number of allocations between two positions.
    every: usize,
    site_count: usize,
    /// Sums by position (the first at `every`), then by site.
    amounts: Vec<Amount>,
}

/// Largest part of the table's memory that the sums take.
const TABLE_PARTS: usize = 8;
/// Memory in bytes that the sums may always take.
const LEAST_BYTES: usize = 16 << 20;
/// Largest number of positions.
const PLACES_MAX: usize = 1 << 10;

impl SitePrefixes {
    /// Computes the sums. `None` if the sum of all sizes does not fit 64 bits, so that differences
    /// of sums would be wrong.
    pub(crate) fn new(
        table: &EventTable,
        parallelism: Parallelism,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>> {
        if u64::try_from(table.total_bytes()).is_err() {
            return Ok(None);
        }
        let (count, site_count) = (table.allocation_count(), table.sites.len());
        let budget = (table.memory_bytes() / TABLE_PARTS).max(LEAST_BYTES);
        let places_max = (budget / (site_count * size_of::<Amount>()).max(1)).min(PLACES_MAX);
        let every = (count / (places_max + 1) + 1).max(parallelism.block);
        let places = if places_max == 0 { 0 } else { count / every };
        let parts = parallelism.each().map(0..places, |places| {
            let mut amounts = vec![Amount::default(); places.len() * site_count];
            for (place, amounts) in places.zip(amounts.chunks_mut(site_count.max(1))) {
                if is_cancelled() {
                    return Err(Error::GivenUp);
                }
                for allocation in place * every..(place + 1) * every {
                    amounts[table.site_of[allocation] as usize].count(table, allocation);
                }
            }
            Ok(amounts)
        })?;
        let mut amounts = parts.concat();
        for at in site_count..amounts.len() {
            let before = amounts[at - site_count];
            let amount = &mut amounts[at];
            amount.bytes += before.bytes;
            amount.count += before.count;
            amount.temporary += before.temporary;
        }
        Ok(Some(Self { every, site_count, amounts }))
    }

    /// Sums of a range of allocations, by site.
    pub(crate) fn totals(&self, table: &EventTable, allocations: Range<usize>) -> Vec<SiteSums> {
        let places = self.amounts.len() / self.site_count.max(1);
        // The positions inside the range: position `n` is behind allocation `(n + 1) * every`.
        let first = allocations.start.div_ceil(self.every);
        let last = (allocations.end / self.every).min(places);
        let mut sums = vec![SiteSums::default(); self.site_count];
        let mut scan = |allocations: Range<usize>| {
            for allocation in allocations {
                let mut one = Amount::default();
                one.count(table, allocation);
                sums[table.site_of[allocation] as usize].include(one);
            }
        };
        if first >= last {
            scan(allocations);
            return sums;
        }
        scan(allocations.start..first * self.every);
        scan(last * self.every..allocations.end);
        let row = |place: usize| &self.amounts[(place - 1) * self.site_count..place * self.site_count];
        let before = (first > 0).then(|| row(first));
        for (site, (sums, end)) in sums.iter_mut().zip(row(last)).enumerate() {
            let before = before.map_or_else(Amount::default, |before| before[site]);
            sums.include(Amount {
                bytes: end.bytes - before.bytes,
                count: end.count - before.count,
                temporary: end.temporary - before.temporary,
            });
        }
        sums
    }
}

impl SiteSums {
    /// Counts an allocation.
    #[inline(always)]
    pub(crate) fn count(&mut self, size_bytes: u64, fate: Fate) {
        self.total_count += 1;
        self.total_bytes = self.total_bytes.saturating_add(size_bytes);
        self.temporary_count += u64::from(fate.is_temporary);
        if !fate.is_ended {
            self.outstanding_count += 1;
            self.outstanding_bytes = self.outstanding_bytes.saturating_add(size_bytes);
        }
        if fate.is_at_peak {
            self.peak_count += 1;
            self.peak_bytes = self.peak_bytes.saturating_add(size_bytes);
        }
    }

    /// Takes note of the allocations that are alive at a range's end: outstanding, or not counted
    /// if only ended ones are. A block that is freed after the range is not temporary in it.
    pub(crate) fn set_alive(&mut self, alive: Amount, wants_outstanding: bool) {
        let (count, bytes) = (u64::from(alive.count), alive.bytes);
        self.temporary_count -= u64::from(alive.temporary);
        if wants_outstanding {
            (self.outstanding_count, self.outstanding_bytes) = (count, bytes);
        } else {
            self.total_count -= count;
            self.total_bytes -= bytes;
        }
    }

    /// Sets the amounts at the peak.
    pub(crate) fn set_at_peak(&mut self, alive: Amount) {
        (self.peak_count, self.peak_bytes) = (u64::from(alive.count), alive.bytes);
    }

    #[inline(always)]
    fn include(&mut self, amount: Amount) {
        self.total_count += u64::from(amount.count);
        self.total_bytes += amount.bytes;
        self.temporary_count += u64::from(amount.temporary);
    }
}
