//! Sources of single edges: searched in the file, or in memory once many were requested.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::index::blocks::Blocks;
use crate::index::layout::{Column, EDGE_SAMPLE};

/// Number of searches in the file after which the first edges of all nodes are loaded. A path
/// search requests millions of edges.
pub(super) const SEARCHES_MAX: u32 = 1 << 13;
/// Largest number of nodes for which this is done: 32 MiB.
const KEPT_NODES_MAX: usize = 8 << 20;

/// Cached columns of an index for this search.
#[derive(Debug, Default)]
pub(super) struct EdgeSources {
    samples: OnceLock<Vec<u32>>,
    first_edges: OnceLock<Vec<u32>>,
    searches: AtomicU32,
}

impl EdgeSources {
    /// Returns the last of `node_count` nodes whose first edge is at most `edge`.
    pub(super) fn source(&self, blocks: &Blocks, node_count: u32, edge: u32) -> u32 {
        match self.kept_first_edges(blocks, node_count as usize) {
            Some(first_edges) => first_edges.partition_point(|&first| first <= edge).saturating_sub(1) as u32,
            None => self.searched(blocks, node_count, edge),
        }
    }

    /// Returns the first edge of each node; `None` until loading them is worth it.
    fn kept_first_edges(&self, blocks: &Blocks, node_count: usize) -> Option<&[u32]> {
        if let Some(first_edges) = self.first_edges.get() {
            return Some(first_edges);
        }
        if node_count > KEPT_NODES_MAX || self.searches.fetch_add(1, Ordering::Relaxed) < SEARCHES_MAX {
            return None;
        }
        Some(self.first_edges.get_or_init(|| {
            let mut first_edges = blocks.all_numbers(Column::FirstEdges);
            // The last number is the end of the last node's edges.
            first_edges.truncate(node_count);
            first_edges
        }))
    }

    fn searched(&self, blocks: &Blocks, node_count: u32, edge: u32) -> u32 {
        let samples = self.samples.get_or_init(|| blocks.all_numbers(Column::EdgeSamples));
        let behind = samples.partition_point(|&first| first <= edge) as u32;
        let step = EDGE_SAMPLE as u32;
        let mut low = behind.saturating_sub(1).saturating_mul(step).min(node_count);
        let mut high = behind.saturating_mul(step).min(node_count);
        while low < high {
            let middle = low + (high - low) / 2;
            if blocks.number(Column::FirstEdges, u64::from(middle)) <= edge {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.saturating_sub(1)
    }
}
