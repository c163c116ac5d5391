//! What a pass over moves needs of their allocations, for a word's worth of moves at once: from the
//! columns in the order of the moves, or from the table as long as there are none.

use crate::allocation_set::AllocationSet;
use crate::event_table::{EventTable, Move};
use crate::move_columns::MoveColumns;

/// Moves at once: bits of a word.
pub(crate) const TOGETHER: usize = 64;

/// See the module.
pub(crate) struct MoveBatch {
    /// Which of the moves are of allocations that count: a bit each.
    pub(crate) counted: u64,
    pub(crate) sizes: [u64; TOGETHER],
    /// Only where groups are asked for.
    pub(crate) groups: [u32; TOGETHER],
}

impl MoveBatch {
    pub(crate) fn new() -> Self {
        Self { counted: 0, sizes: [0; TOGETHER], groups: [0; TOGETHER] }
    }

    /// Fetches for up to [`TOGETHER`] moves from number `first` on. `group_of`: by site.
    #[inline(always)]
    pub(crate) fn fetch(
        &mut self,
        (table, columns): (&EventTable, Option<&MoveColumns>),
        passing: &AllocationSet,
        group_of: Option<&[u32]>,
        (first, moves): (usize, &[Move]),
    ) {
        self.counted = passing.bits(moves);
        let Some(columns) = columns else {
            for (size, one) in self.sizes.iter_mut().zip(moves) {
                *size = table.size_bytes(one.allocation());
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
