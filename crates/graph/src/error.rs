//! What can be wrong with a graph.

/// The arrays that were given do not make a graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// The array of first edges is empty; even a graph without nodes has one border.
    #[error("no first edges were given")]
    NoBorders,
    /// Node and edge numbers are 32 bits wide.
    #[error("{node_count} nodes and {edge_count} edges do not fit 32-bit numbers")]
    TooLarge {
        /// Nodes given.
        node_count: usize,
        /// Edges given.
        edge_count: usize,
    },
    /// The first border must be 0 and the last one the count of edges.
    #[error("the borders {first} to {last} do not cover {edge_count} edges")]
    BordersMissEdges {
        /// The first border.
        first: u32,
        /// The last border.
        last: u32,
        /// Edges given.
        edge_count: usize,
    },
    /// A node's edges end before they begin.
    #[error("the edges of node {node} begin at {begin} and end at {end}")]
    BordersDescend {
        /// The node.
        node: u32,
        /// Its first edge.
        begin: u32,
        /// The first edge of the next node.
        end: u32,
    },
    /// An edge goes to a node that does not exist.
    #[error("edge {edge} goes to node {target} of {node_count}")]
    TargetOutside {
        /// The edge.
        edge: u32,
        /// Where it goes.
        target: u32,
        /// How many nodes there are.
        node_count: u32,
    },
    /// What was given as a tree is none, or does not hold all nodes.
    #[error("{found} of {node_count} nodes hang from node {root}")]
    NoTree {
        /// The root.
        root: u32,
        /// How many were found below it.
        found: u64,
        /// How many there are.
        node_count: u32,
    },
}
