//! The retainers of each object that many others hold, in their order: kept in the index, so that a
//! page of who holds the shape of a million objects is told without a look at all of them.

use heapr_graph::Retainers;

use crate::devtools::{Heap, RetainersView};
use crate::index::layout::{Column, NUMBERS_OF_NODE};
use crate::index::stored_graph::StoredGraph;
use crate::objects::{Objects as _, Page};

/// From so many edges on the order of a node's retainers is kept; fewer are put in order in some
/// milliseconds.
const LARGE: usize = if cfg!(test) { 500 } else { 5000 };
/// The columns of all nodes with many retainers.
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
    /// Looks up the node among those with many retainers.
    pub(super) fn page_of_retainers(&self, node: u32, page: Page) -> Option<(Vec<u32>, usize)> {
        if self.row(Column::FirstRetainers, Column::Retainers, node).len() < LARGE {
            return None;
        }
        let at = self.row_of(Column::RetainerOrderRows, NUMBERS_OF_NODE, node)?;
        let begin = u64::from(self.blocks.number(Column::RetainerOrderRows, at + 1));
        let count = self.blocks.number(Column::RetainerOrderRows, at + 2);
        let rows = page.range(count as usize);
        let (first, end) = (begin + rows.start as u64, begin + rows.end as u64);
        // What lies about the count must not make it reserve memory for as much.
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
