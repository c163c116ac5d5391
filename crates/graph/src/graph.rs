//! Graph as compressed sparse rows: edges grouped by source.

use std::ops::Range;

use crate::GraphError;

/// Directed graph in two flat arrays. Nodes and edges are numbered from 0.
///
/// ```text
///  node           0     1  2        first_edge  [0, 2, 3, 3]       (node_count + 1 entries)
///  edges       0  1     2           edges       [1, 2, 2]          (target, tag in low bits)
///              |  |     |
///              1  2     2
/// ```
///
/// An edge may have a small number of the caller's, its tag. It shares the word of the target, so
/// that a walk that asks for both reads memory once. Names and sizes are in columns of the caller,
/// indexed by the same numbers.
#[derive(Debug, Clone)]
pub struct Graph {
    first_edge: Vec<u32>,
    edges: Vec<u32>,
    tag_bits: u32,
}

impl Graph {
    /// Builds a graph from the first edge of each node (one more entry than nodes) and the target
    /// of each edge.
    pub fn new(first_edge: Vec<u32>, targets: Vec<u32>) -> Result<Self, GraphError> {
        Self::tagged(first_edge, targets, 0)
    }

    /// Builds a graph whose edges have tags: a word is the target, shifted by `tag_bits`, and the
    /// tag below.
    pub fn tagged(first_edge: Vec<u32>, edges: Vec<u32>, tag_bits: u32) -> Result<Self, GraphError> {
        let edge_count = edges.len();
        let most_nodes = u32::MAX.checked_shr(tag_bits).unwrap_or(0) as usize;
        if u32::try_from(edge_count).is_err() || first_edge.len() > most_nodes {
            return Err(GraphError::TooLarge { node_count: first_edge.len().saturating_sub(1), edge_count });
        }
        let node_count = first_edge.len().saturating_sub(1) as u32;
        check_borders(&first_edge, edge_count, node_count)?;
        check_values(&edges, tag_bits, node_count)?;
        Ok(Self { first_edge, edges, tag_bits })
    }

    /// Number of nodes.
    pub fn node_count(&self) -> u32 {
        (self.first_edge.len() - 1) as u32
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u32 {
        self.edges.len() as u32
    }

    /// Outgoing edges of `node`.
    #[inline]
    pub fn edges(&self, node: u32) -> Range<u32> {
        self.first_edge[node as usize]..self.first_edge[node as usize + 1]
    }

    /// Targets of the edges of `node`, in edge order.
    #[inline]
    pub fn targets_of(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let edges = self.edges(node);
        self.edges[edges.start as usize..edges.end as usize].iter().map(move |word| word >> self.tag_bits)
    }

    /// Target of `edge`.
    #[inline]
    pub fn target(&self, edge: u32) -> u32 {
        self.edges[edge as usize] >> self.tag_bits
    }

    /// Tag of `edge`; 0 in a graph without tags.
    #[inline]
    pub fn tag(&self, edge: u32) -> u32 {
        self.edges[edge as usize] & ((1 << self.tag_bits) - 1)
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

    /// Targets of all edges.
    pub fn targets(&self) -> impl Iterator<Item = u32> + '_ {
        self.edges.iter().map(move |word| word >> self.tag_bits)
    }

    /// Tags of all edges.
    pub fn tags(&self) -> impl Iterator<Item = u32> + '_ {
        let mask = (1 << self.tag_bits) - 1;
        self.edges.iter().map(move |word| word & mask)
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
    check_borders(first, edge_count, node_count)?;
    check_values(values, 0, limit)
}

fn check_borders(first: &[u32], edge_count: usize, node_count: u32) -> Result<(), GraphError> {
    let Some((&last, _)) = first.split_last() else {
        return Err(GraphError::NoBorders);
    };
    if first[0] != 0 || last as usize != edge_count || first.len() - 1 != node_count as usize {
        return Err(GraphError::BordersMissEdges { first: first[0], last, edge_count });
    }
    match first.windows(2).position(|pair| pair[0] > pair[1]) {
        Some(at) => Err(GraphError::BordersDescend { node: at as u32, begin: first[at], end: first[at + 1] }),
        None => Ok(()),
    }
}

fn check_values(values: &[u32], tag_bits: u32, limit: u32) -> Result<(), GraphError> {
    // One maximum over all values takes a third of the time of a search that may stop early.
    if values.iter().copied().max().is_some_and(|greatest| greatest >> tag_bits >= limit) {
        let edge = values.iter().position(|&value| value >> tag_bits >= limit).unwrap_or(0);
        let target = values[edge] >> tag_bits;
        return Err(GraphError::TargetOutside { edge: edge as u32, target, node_count: limit });
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
        assert_eq!(graph.targets_of(0).collect::<Vec<_>>(), [1, 2]);
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
    fn tags_share_the_words_of_targets() {
        let graph = Graph::tagged(vec![0, 2, 2, 3], vec![1 << 4 | 8, 2 << 4, 15], 4).unwrap();
        assert_eq!(graph.targets().collect::<Vec<_>>(), [1, 2, 0]);
        assert_eq!(graph.tags().collect::<Vec<_>>(), [8, 0, 15]);
        assert_eq!((graph.target(0), graph.tag(0), graph.tag(2)), (1, 8, 15));
        assert!(matches!(
            Graph::tagged(vec![0, 1, 1], vec![2 << 4], 4),
            Err(GraphError::TargetOutside { edge: 0, target: 2, node_count: 2 })
        ));
        assert!(matches!(Graph::tagged(vec![0; 17], vec![], 28), Err(GraphError::TooLarge { .. })));
        assert_eq!(Graph::new(vec![0, 1], vec![0]).unwrap().tag(0), 0);
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
