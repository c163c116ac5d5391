//! Errors of building a graph.

/// Reason why arrays do not form a graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The array of first edges is empty; even a graph without nodes has one bound.
    #[error("no first edges were given")]
    NoBorders,
    /// The nodes or edges are too many for words of 32 bits, in which edges may have tags.
    #[error("{node_count} nodes and {edge_count} edges do not fit words of 32 bits")]
    TooLarge {
        /// Number of nodes.
        node_count: usize,
        /// Number of edges.
        edge_count: usize,
    },
    /// The first bound is not 0, or the last one is not the number of edges.
    #[error("the borders {first} to {last} do not cover {edge_count} edges")]
    BordersMissEdges {
        /// First bound.
        first: u32,
        /// Last bound.
        last: u32,
        /// Number of edges.
        edge_count: usize,
    },
    /// A node's edges end before they begin.
    #[error("the edges of node {node} begin at {begin} and end at {end}")]
    BordersDescend {
        /// Node with these edges.
        node: u32,
        /// First edge of the node.
        begin: u32,
        /// First edge of the next node.
        end: u32,
    },
    /// An edge leads to a node that does not exist.
    #[error("edge {edge} goes to node {target} of {node_count}")]
    TargetOutside {
        /// Number of the edge.
        edge: u32,
        /// Target of the edge.
        target: u32,
        /// Number of nodes.
        node_count: u32,
    },
    /// The parts do not form a tree of all nodes.
    #[error("{found} of {node_count} nodes hang from node {root}")]
    NoTree {
        /// Root of the tree.
        root: u32,
        /// Number of nodes found below the root.
        found: u64,
        /// Number of all nodes.
        node_count: u32,
    },
}
