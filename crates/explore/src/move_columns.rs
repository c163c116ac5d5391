//! Sizes and sites in the order of the moves: 4 bytes a move, 6 with many sites. A pass over moves
//! reads them sequentially.
//!
//! The allocation of an end lies at a random position in columns of hundreds of megabytes. Without
//! these columns a pass spends more than half of its time waiting for them. Nearly all sizes fit 16
//! bits; the others are looked up in the table.

use std::ops::Range;

use heapr_query::{Error, Result};

use crate::event_table::{EventTable, Move};
use crate::parallelism::Parallelism;

/// Number of moves between two checks for cancellation.
const CANCEL_INTERVAL: usize = 1 << 16;
/// Marks a size that does not fit its column.
const LARGE: u16 = u16::MAX;

/// Sizes and sites in the order of the moves.
#[derive(Debug)]
pub(crate) struct MoveColumns {
    sizes: Vec<u16>,
    sites: SiteColumn,
}

/// Sites of the moves, in the width that their number needs.
#[derive(Debug)]
enum SiteColumn {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl MoveColumns {
    /// Computes the columns; `None` if there is no memory for them.
    pub(crate) fn new(
        table: &EventTable,
        parallelism: Parallelism,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Self>> {
        let size = |allocation: usize| u16::try_from(table.size_bytes(allocation)).unwrap_or(LARGE);
        let sizes = in_order(table, size, parallelism, is_cancelled)?;
        let sites = if table.sites.len() <= usize::from(u16::MAX) + 1 {
            let site = |allocation: usize| table.site_of[allocation] as u16;
            in_order(table, site, parallelism, is_cancelled)?.map(SiteColumn::Narrow)
        } else {
            in_order(table, |allocation| table.site_of[allocation], parallelism, is_cancelled)?
                .map(SiteColumn::Wide)
        };
        Ok(sizes.zip(sites).map(|(sizes, sites)| Self { sizes, sites }))
    }

    /// Size of a move's allocation.
    #[inline(always)]
    pub(crate) fn size_bytes(&self, table: &EventTable, sequence: usize, allocation: usize) -> u64 {
        size_of_stored(table, self.sizes[sequence], allocation)
    }

    /// Site of a move's allocation.
    #[inline(always)]
    pub(crate) fn site(&self, sequence: usize) -> u32 {
        match &self.sites {
            SiteColumn::Narrow(sites) => u32::from(sites[sequence]),
            SiteColumn::Wide(sites) => sites[sequence],
        }
    }

    /// Fetches the sizes of moves from number `first` on.
    #[inline(always)]
    pub(crate) fn fetch_sizes(&self, table: &EventTable, first: usize, moves: &[Move], sizes: &mut [u64]) {
        let stored = &self.sizes[first..first + moves.len()];
        for ((size, one), &stored) in sizes.iter_mut().zip(moves).zip(stored) {
            *size = size_of_stored(table, stored, one.allocation());
        }
    }

    /// Fetches the entries of `of_site` for the sites of some moves.
    #[inline(always)]
    pub(crate) fn fetch_by_site(&self, moves: Range<usize>, of_site: &[u32], values: &mut [u32]) {
        match &self.sites {
            SiteColumn::Narrow(sites) => {
                values
                    .iter_mut()
                    .zip(&sites[moves])
                    .for_each(|(value, &site)| *value = of_site[site as usize]);
            }
            SiteColumn::Wide(sites) => {
                values
                    .iter_mut()
                    .zip(&sites[moves])
                    .for_each(|(value, &site)| *value = of_site[site as usize]);
            }
        }
    }
}

#[inline(always)]
fn size_of_stored(table: &EventTable, stored: u16, allocation: usize) -> u64 {
    if stored == LARGE { table.size_bytes(allocation) } else { u64::from(stored) }
}

/// A value of each move's allocation, in the order of the moves; `None` if there is no memory for
/// it.
fn in_order<T: Copy + Send>(
    table: &EventTable,
    value: impl Fn(usize) -> T + Sync,
    parallelism: Parallelism,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Option<Vec<T>>> {
    let parts = parallelism.map(0..table.moves.len(), |part| {
        let mut values: Vec<T> = Vec::new();
        if values.try_reserve_exact(part.len()).is_err() {
            return Ok(None);
        }
        for moves in table.moves[part].chunks(CANCEL_INTERVAL) {
            if is_cancelled() {
                return Err(Error::GivenUp);
            }
            values.extend(moves.iter().map(|one| value(one.allocation())));
        }
        Ok(Some(values))
    })?;
    Ok(joined(parts))
}

/// Concatenates the parts, without copying the first.
fn joined<T: Copy>(parts: Vec<Option<Vec<T>>>) -> Option<Vec<T>> {
    let mut parts = parts.into_iter();
    let mut whole = parts.next()??;
    for part in parts {
        let part = part?;
        whole.try_reserve_exact(part.len()).ok()?;
        whole.extend(part);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use heapr_trace::{HeapId, ProcessIndex, StackIndex, ThreadIndex};

    use super::*;
    use crate::site_table::Site;

    #[test]
    fn sizes_and_sites_are_those_of_the_table_however_many_there_are() {
        for site_count in [3_u32, 65_536, 65_537, 70_000] {
            let mut table = EventTable::default();
            let site = Site {
                stack: StackIndex(0),
                process: ProcessIndex(0),
                heap: HeapId::MALLOC,
                thread: ThreadIndex(0),
                is_realloc: false,
            };
            table.sites = vec![site; site_count as usize];
            let sizes = [0, 1, 65_534, 65_535, 65_536, u64::from(u32::MAX), 1 << 40];
            for (at, &size_bytes) in sizes.iter().enumerate() {
                table.push_allocation((site_count - 1).saturating_sub(at as u32), size_bytes);
            }
            for allocation in [4, 0] {
                table.moves.push(Move::end(allocation));
            }
            let parallelism = Parallelism { threads: 2, least: 2, ..Parallelism::default() };
            let columns = MoveColumns::new(&table, parallelism, &|| false).unwrap().unwrap();
            let mut fetched = [0; 9];
            columns.fetch_sizes(&table, 0, &table.moves, &mut fetched);
            let of_site: Vec<u32> = (0..site_count).map(|site| site * 2).collect();
            let mut doubled = [0; 9];
            columns.fetch_by_site(0..9, &of_site, &mut doubled);
            for (sequence, one) in table.moves.iter().enumerate() {
                let allocation = one.allocation();
                assert_eq!(columns.size_bytes(&table, sequence, allocation), sizes[allocation]);
                assert_eq!(columns.site(sequence), table.site_of[allocation]);
                assert_eq!(
                    (fetched[sequence], doubled[sequence]),
                    (sizes[allocation], 2 * table.site_of[allocation])
                );
            }
        }
    }
}
