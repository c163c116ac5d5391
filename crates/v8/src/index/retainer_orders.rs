//! Ordered retainers of each object that many others refer to. The index stores them, so that a
//! page of the referrers of a shape with a million objects needs no scan.

use heapr_graph::Retainers;

use crate::devtools::{Heap, RetainersView};
use crate::index::layout::{Column, NUMBERS_OF_NODE};
use crate::index::stored_graph::StoredGraph;
use crate::objects::{Objects as _, Page};

/// Number of edges from which a node's retainers are stored in order; fewer are sorted within
/// milliseconds.
const LARGE: usize = if cfg!(test) { 500 } else { 5000 };
/// Columns of all nodes with many retainers.
#[derive(Debug, Default)]
pub(super) struct RetainerOrders {
    pub(super) rows: Vec<u32>,
    pub(super) edges: Vec<u32>,
}

impl RetainerOrders {
    pub(super) fn of(heap: &Heap, retainers: &Retainers) -> Self {
        let view = RetainersView::whole(heap);
        let mut orders = Self::default();
        for (node, borders) in (0..).zip(retainers.first_edges_into().windows(2)) {
            if ((borders[1] - borders[0]) as usize) < LARGE {
                continue;
            }
            let edges = view.order_of(retainers.edges_into(node)).all();
            orders.rows.extend([node, orders.edges.len() as u32, edges.len() as u32]);
            orders.edges.extend(edges);
        }
        orders
    }
}

impl StoredGraph {
    /// Returns a page of a node's retainers and their number, if the node is among those with many.
    pub(super) fn page_of_retainers(&self, node: u32, page: Page) -> Option<(Vec<u32>, usize)> {
        if self.row(Column::FirstRetainers, Column::Retainers, node).len() < LARGE {
            return None;
        }
        let at = self.row_of(Column::RetainerOrderRows, NUMBERS_OF_NODE, node)?;
        let begin = u64::from(self.blocks.number(Column::RetainerOrderRows, at + 1));
        let count = self.blocks.number(Column::RetainerOrderRows, at + 2);
        let rows = page.range(count as usize);
        let (first, end) = (begin + rows.start as u64, begin + rows.end as u64);
        // The bounds are checked first, so that a false count does not reserve much memory.
        let edges = match end <= self.blocks.count(Column::RetainerOrders) {
            true => self.blocks.numbers(Column::RetainerOrders, first..end),
            false => Vec::new(),
        };
        if edges.len() != rows.len() || edges.iter().any(|&edge| edge >= self.edge_count()) {
            self.blocks.report(|| format!("{:?} of {node} has no such edge", Column::RetainerOrders));
            return None;
        }
        Some((edges, count as usize))
    }
}
