//! Data of the allocations of up to 64 moves, for a pass over moves. It comes from the columns in
//! the order of the moves, or from the table while there are no columns.

use crate::allocation_set::AllocationSet;
use crate::event_table::{EventTable, Move};
use crate::move_columns::MoveColumns;
use crate::size_column::SizeColumn;

/// Number of moves in a batch: the bits of a word.
pub(crate) const TOGETHER: usize = 64;

/// Data of a batch of moves.
pub(crate) struct MoveBatch {
    /// A bit for each move whose allocation counts.
    pub(crate) counted: u64,
    pub(crate) sizes: [u64; TOGETHER],
    /// Group of each move's allocation, if groups are requested.
    pub(crate) groups: [u32; TOGETHER],
}

impl MoveBatch {
    pub(crate) fn new() -> Self {
        Self { counted: 0, sizes: [0; TOGETHER], groups: [0; TOGETHER] }
    }

    /// Fetches up to [`TOGETHER`] moves from number `first` on. `sizes`: the amounts to fetch if
    /// there are no columns. `group_of`: group of each site.
    #[inline(always)]
    pub(crate) fn fetch(
        &mut self,
        (table, sizes, columns): (&EventTable, &SizeColumn, Option<&MoveColumns>),
        passing: &AllocationSet,
        group_of: Option<&[u32]>,
        (first, moves): (usize, &[Move]),
    ) {
        self.counted = passing.bits(moves);
        let Some(columns) = columns else {
            for (size, one) in self.sizes.iter_mut().zip(moves) {
                *size = sizes.get(one.allocation());
            }
            if let Some(group_of) = group_of {
                for (group, one) in self.groups.iter_mut().zip(moves) {
                    *group = group_of[table.site_of[one.allocation()] as usize];
                }
            }
            return;
        };
        columns.fetch_sizes(table, first, moves, &mut self.sizes);
        if let Some(group_of) = group_of {
            columns.fetch_by_site(first..first + moves.len(), group_of, &mut self.groups);
        }
    }
}
