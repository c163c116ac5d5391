//! Graph as compressed sparse rows: edges grouped by source.

use std::ops::Range;

use crate::GraphError;

/// Directed graph in two flat arrays. Nodes and edges are numbered from 0 and have no other
/// properties.
///
/// ```text
///  node           0     1  2        first_edge  [0, 2, 3, 3]       (node_count + 1 entries)
///  edges       0  1     2           targets     [1, 2, 2]
///              |  |     |
///              1  2     2
/// ```
///
/// Names, kinds and sizes are in columns of the caller, indexed by the same numbers.
#[derive(Debug, Clone)]
pub struct Graph {
    first_edge: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    /// Builds a graph from the first edge of each node (one more entry than nodes) and the target
    /// of each edge.
    pub fn new(first_edge: Vec<u32>, targets: Vec<u32>) -> Result<Self, GraphError> {
        let edge_count = targets.len();
        if u32::try_from(edge_count).is_err() || u32::try_from(first_edge.len()).is_err() {
            return Err(GraphError::TooLarge { node_count: first_edge.len().saturating_sub(1), edge_count });
        }
        let node_count = first_edge.len().saturating_sub(1) as u32;
        check_rows(&first_edge, edge_count, node_count, node_count, &targets)?;
        Ok(Self { first_edge, targets })
    }

    /// Number of nodes.
    pub fn node_count(&self) -> u32 {
        (self.first_edge.len() - 1) as u32
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u32 {
        self.targets.len() as u32
    }

    /// Outgoing edges of `node`.
    #[inline]
    pub fn edges(&self, node: u32) -> Range<u32> {
        self.first_edge[node as usize]..self.first_edge[node as usize + 1]
    }

    /// Targets of the edges of `node`, in edge order.
    #[inline]
    pub fn targets_of(&self, node: u32) -> &[u32] {
        let edges = self.edges(node);
        &self.targets[edges.start as usize..edges.end as usize]
    }

    /// Target of `edge`.
    #[inline]
    pub fn target(&self, edge: u32) -> u32 {
        self.targets[edge as usize]
    }

    /// Source of `edge`, by binary search.
    pub fn source(&self, edge: u32) -> u32 {
        // The source is the last node whose first edge is at most this one. Nodes without edges
        // share their bound with the next node.
        (self.first_edge.partition_point(|&first| first <= edge) - 1) as u32
    }

    /// Returns the sources of some edges. For edges in descending order, this is much faster than
    /// single calls of [`Self::source`].
    pub fn sources(&self, edges: &[u32]) -> Vec<u32> {
        let last = self.first_edge.len() - 1;
        // Index after the source of the previous edge; the next source is usually close below it.
        let mut border = last;
        let source_of = |&edge: &u32| {
            if self.first_edge[border] <= edge {
                border = last;
            }
            let mut step = 1;
            while step <= border && self.first_edge[border - step] > edge {
                border -= step;
                step *= 2;
            }
            let low = border.saturating_sub(step);
            border = low + self.first_edge[low..border].partition_point(|&first| first <= edge);
            (border - 1) as u32
        };
        edges.iter().map(source_of).collect()
    }

    /// Target of every edge.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// First edge of every node, followed by the number of edges.
    pub fn first_edges(&self) -> &[u32] {
        &self.first_edge
    }
}

/// Checks that `first` partitions `values` into a row for each of `node_count` nodes, and that each
/// value is below `limit`.
pub(crate) fn check_rows(
    first: &[u32],
    edge_count: usize,
    node_count: u32,
    limit: u32,
    values: &[u32],
) -> Result<(), GraphError> {
    let Some((&last, _)) = first.split_last() else {
        return Err(GraphError::NoBorders);
    };
    if first[0] != 0 || last as usize != edge_count || first.len() - 1 != node_count as usize {
        return Err(GraphError::BordersMissEdges { first: first[0], last, edge_count });
    }
    if let Some(at) = first.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(GraphError::BordersDescend { node: at as u32, begin: first[at], end: first[at + 1] });
    }
    // One maximum over all values takes a third of the time of a search that may stop early.
    if values.iter().copied().max().is_some_and(|greatest| greatest >= limit) {
        let edge = values.iter().position(|&value| value >= limit).unwrap_or(0);
        return Err(GraphError::TargetOutside { edge: edge as u32, target: values[edge], node_count: limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_know_their_ends() {
        let graph = Graph::new(vec![0, 2, 2, 3], vec![1, 2, 0]).unwrap();
        assert_eq!((graph.node_count(), graph.edge_count()), (3, 3));
        assert_eq!((graph.edges(0), graph.edges(1), graph.edges(2)), (0..2, 2..2, 2..3));
        assert_eq!([0, 1, 2].map(|edge| graph.source(edge)), [0, 0, 2]);
        assert_eq!(graph.targets_of(0), [1, 2]);
    }

    #[test]
    fn the_sources_of_some_edges_are_those_of_each() {
        let mut first_edges = vec![0];
        for node in 0..1000_u32 {
            first_edges.push(first_edges[node as usize] + node * node % 11 * (node % 3));
        }
        let edge_count = first_edges[1000];
        let graph = Graph::new(first_edges, vec![0; edge_count as usize]).unwrap();
        let all: Vec<u32> = (0..edge_count).collect();
        for step in [1, 2, 7, 100, 3000] {
            let mut edges: Vec<u32> = all.iter().copied().rev().step_by(step).collect();
            // Sources of edges in other orders are found as well.
            edges.extend([5, edge_count - 1, 0, 77]);
            let single: Vec<u32> = edges.iter().map(|&edge| graph.source(edge)).collect();
            assert_eq!(graph.sources(&edges), single, "{step}");
        }
        assert_eq!(graph.sources(&[]), []);
    }

    #[test]
    fn borders_and_targets_are_checked() {
        assert!(matches!(Graph::new(vec![], vec![]), Err(GraphError::NoBorders)));
        assert!(matches!(Graph::new(vec![0, 1], vec![]), Err(GraphError::BordersMissEdges { .. })));
        assert!(matches!(Graph::new(vec![1, 1], vec![0]), Err(GraphError::BordersMissEdges { .. })));
        assert!(matches!(
            Graph::new(vec![0, 2, 1], vec![0]),
            Err(GraphError::BordersDescend { node: 1, .. })
        ));
        assert!(matches!(
            Graph::new(vec![0, 1, 2], vec![0, 2]),
            Err(GraphError::TargetOutside { edge: 1, target: 2, node_count: 2 })
        ));
        assert!(Graph::new(vec![0], vec![]).is_ok());
    }
}
