//! The first and the last retainers of each object that many others hold, in their order: kept in the index, so that who
//! holds the shape of a million objects is told without a look at all of them.

use heapr_graph::Retainers;

use crate::devtools::{Heap, RetainerEnds, RetainersView};
use crate::index::class_ends::END_ROWS;
use crate::index::layout::Column;
use crate::index::stored_graph::StoredGraph;
use crate::view::Objects as _;

/// From so many edges on the ends of a node's retainers are kept; fewer are put in order in some milliseconds.
const LARGE: usize = if cfg!(test) { 500 } else { 5000 };
/// Numbers for each node: its own, how many retainers it has, the first ones and the last ones; those that are not there are 0.
pub(super) const NUMBERS_OF_NODE: usize = 2 + 2 * END_ROWS;

impl StoredGraph {
    /// Looks up the node among those with many retainers.
    pub(super) fn ends_of_retainers(&self, node: u32) -> Option<RetainerEnds> {
        if self.row(Column::FirstRetainers, Column::Retainers, node).len() < LARGE {
            return None;
        }
        let begin = self.row_of(Column::RetainerEnds, NUMBERS_OF_NODE, node)?;
        let mut numbers =
            self.blocks.numbers(Column::RetainerEnds, begin + 1..begin + NUMBERS_OF_NODE as u64);
        if numbers.len() + 1 != NUMBERS_OF_NODE || numbers[1..].iter().any(|&edge| edge >= self.edge_count())
        {
            self.blocks.report(|| format!("{:?} of {node} has no such edge", Column::RetainerEnds));
            return None;
        }
        let total_count = numbers[0] as usize;
        let kept = END_ROWS.min(total_count);
        let mut last = numbers.split_off(1 + END_ROWS);
        last.truncate(kept);
        let first = numbers[1..=kept].to_vec();
        Some(RetainerEnds { total_count, first, last })
    }
}

/// The numbers of all nodes with many retainers.
pub(super) fn retainer_ends(heap: &Heap, retainers: &Retainers) -> Vec<u32> {
    let view = RetainersView::whole(heap);
    let mut numbers = Vec::new();
    for (node, borders) in (0..).zip(retainers.first_edges_into().windows(2)) {
        if ((borders[1] - borders[0]) as usize) < LARGE {
            continue;
        }
        let ends = view.order_of(retainers.edges_into(node)).ends(END_ROWS);
        numbers.extend([node, ends.total_count as u32]);
        for end in [ends.first, ends.last] {
            let missing = END_ROWS - end.len();
            numbers.extend(end.into_iter().chain(std::iter::repeat_n(0, missing)));
        }
    }
    numbers
}
