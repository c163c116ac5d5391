//! Reversed edges: the referrers of a node.

use crate::graph::check_rows;
use crate::{Graph, GraphError};

/// Incoming edges of every node, in the order that DevTools shows: the reverse of edge order.
#[derive(Debug, Clone)]
pub struct Retainers {
    first: Vec<u32>,
    edges: Vec<u32>,
}

impl Retainers {
    /// Sorts the edges of `graph` by target.
    pub fn of(graph: &Graph) -> Self {
        let node_count = graph.node_count() as usize;
        let mut first = vec![0u32; node_count + 1];
        for target in graph.targets() {
            first[target as usize] += 1;
        }
        let mut end = 0;
        for slot in &mut first {
            end += *slot;
            *slot = end;
        }
        // Each slot holds the end of its node's run, and moves down to the start while the run is
        // filled from its end.
        let mut edges = vec![0u32; graph.edge_count() as usize];
        for (edge, target) in graph.targets().enumerate() {
            let slot = &mut first[target as usize];
            *slot -= 1;
            edges[*slot as usize] = edge as u32;
        }
        Self { first, edges }
    }

    /// Builds the retainers from stored [`Self::first_edges_into`] and [`Self::all_edges`].
    pub fn from_parts(first: Vec<u32>, edges: Vec<u32>, graph: &Graph) -> Result<Self, GraphError> {
        check_rows(&first, edges.len(), graph.node_count(), graph.edge_count(), &edges)?;
        Ok(Self { first, edges })
    }

    /// Index of each node's first edge in [`Self::all_edges`], followed by the number of edges.
    pub fn first_edges_into(&self) -> &[u32] {
        &self.first
    }

    /// Edges into all nodes, grouped by node.
    pub fn all_edges(&self) -> &[u32] {
        &self.edges
    }

    /// Returns the edges into `node`.
    #[inline]
    pub fn edges_into(&self, node: u32) -> &[u32] {
        &self.edges[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// Returns the sources of the edges into `node`, one per edge.
    pub fn sources<'a>(&'a self, graph: &'a Graph, node: u32) -> impl Iterator<Item = u32> + 'a {
        self.edges_into(node).iter().map(|&edge| graph.source(edge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retainers_come_in_the_reverse_of_edge_order() {
        let graph = Graph::new(vec![0, 2, 4, 5, 5], vec![1, 2, 2, 2, 0]).unwrap();
        let retainers = Retainers::of(&graph);
        assert_eq!(retainers.edges_into(0), [4]);
        assert_eq!(retainers.edges_into(1), [0]);
        assert_eq!(retainers.edges_into(2), [3, 2, 1]);
        assert_eq!(retainers.edges_into(3), [] as [u32; 0]);
        assert_eq!(retainers.sources(&graph, 2).collect::<Vec<_>>(), [1, 1, 0]);
    }
}
