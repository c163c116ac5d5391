//! Finds the allocations that are alive at a move without examining all others.
//!
//! ```text
//! allocations   │ 0 … 4095 │ 4096 … 8191 │ 8192 … 12287 │ …
//! last end      │   9,120  │    never    │    31,007    │
//!                  alive at 20,000? none      examine    examine
//! ```
//! Most allocations of a program end soon. Of a hundred million events, a few hundred thousand
//! allocations are alive at a time, so that most blocks are skipped. In the other blocks the ends
//! are compared one cache line at a time.

use std::ops::Range;

use heapr_query::{Error, Result};

use crate::event_table::EventTable;
use crate::parallelism::Parallelism;

/// Number of ends that are compared at once: a cache line.
const LINE: usize = 16;
/// Number of blocks between two checks for cancellation.
const CANCEL_INTERVAL: usize = 1 << 8;

/// Last end of each block of allocations.
#[derive(Debug)]
pub(crate) struct LastEnds {
    block: usize,
    /// Last end of each block.
    ends: Vec<u32>,
}

impl LastEnds {
    /// Computes the last ends of a table.
    pub(crate) fn new(table: &EventTable, parallelism: Parallelism) -> Result<Self> {
        let block = parallelism.block.max(1);
        let count = table.allocation_count();
        let parts = parallelism.each().map(0..count.div_ceil(block), |blocks| {
            let last = |number: usize| {
                let ends = &table.ends[number * block..((number + 1) * block).min(count)];
                ends.iter().map(|end| end.sequence()).max().unwrap_or(0)
            };
            Ok(blocks.map(last).collect::<Vec<u32>>())
        })?;
        Ok(Self { block, ends: parts.concat() })
    }

    /// Passes those of `allocations` that are live before the move `at` to `visit`, in order.
    /// Neither they nor their processes end before it.
    #[inline(always)]
    pub(crate) fn for_each_live(
        &self,
        table: &EventTable,
        allocations: Range<usize>,
        at: u32,
        is_cancelled: &(dyn Fn() -> bool + Sync),
        mut visit: impl FnMut(usize),
    ) -> Result<()> {
        let visit = |allocation: usize| {
            if table.left.is_empty() || table.last_move(allocation) >= at {
                visit(allocation);
            }
        };
        self.for_each_alive(table, allocations, at, is_cancelled, visit)
    }

    /// Passes those of `allocations` that do not end before the move `at` to `visit`, in order.
    #[inline(always)]
    pub(crate) fn for_each_alive(
        &self,
        table: &EventTable,
        allocations: Range<usize>,
        at: u32,
        is_cancelled: &(dyn Fn() -> bool + Sync),
        mut visit: impl FnMut(usize),
    ) -> Result<()> {
        let mut start = allocations.start;
        while start < allocations.end {
            let block = start / self.block;
            let end = ((block + 1) * self.block).min(allocations.end);
            if block.is_multiple_of(CANCEL_INTERVAL) && is_cancelled() {
                return Err(Error::GivenUp);
            }
            if self.ends[block] >= at {
                for (line, ends) in table.ends[start..end].chunks(LINE).enumerate() {
                    // One comparison for a line in which all have ended.
                    if ends.iter().fold(0, |last, end| last.max(end.sequence())) < at {
                        continue;
                    }
                    for (place, end) in ends.iter().enumerate() {
                        if end.sequence() >= at {
                            visit(start + line * LINE + place);
                        }
                    }
                }
            }
            start = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event_table::End;

    proptest! {
        #[test]
        fn shows_what_a_look_at_each_would_show(
            ends in prop::collection::vec(prop::option::of(0..60_u32), 0..200),
            block in 1..40_usize,
            from in 0..210_usize,
            to in 0..210_usize,
            at in 0..70_u32,
        ) {
            let mut table = EventTable::default();
            for (allocation, end) in ends.iter().enumerate() {
                table.push_allocation(0, 8);
                if let Some(end) = end {
                    table.ends[allocation] = End::new(*end, end % 2 == 0);
                }
            }
            let parallelism = Parallelism { threads: 2, least: 3, block };
            let known = LastEnds::new(&table, parallelism).unwrap();
            let part = from.min(ends.len())..to.min(ends.len()).max(from.min(ends.len()));
            let mut shown = Vec::new();
            known.for_each_alive(&table, part.clone(), at, &|| false, |allocation| shown.push(allocation)).unwrap();
            let alive = part.filter(|&allocation| ends[allocation].is_none_or(|end| end >= at));
            prop_assert_eq!(shown, alive.collect::<Vec<_>>());
        }
    }
}
