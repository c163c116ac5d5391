//! Size of each node's subtree in the dominator tree.

use heapr_graph::Dominators;

/// Number of nodes that each node dominates, itself included.
#[derive(Debug)]
pub(crate) struct SubtreeCounts(Vec<u32>);

impl SubtreeCounts {
    pub(crate) fn of(dominators: &Dominators) -> Self {
        let order = dominators.order();
        let mut counts = vec![1u32; order.len()];
        for &node in order[1..].iter().rev() {
            counts[dominators.idom(node) as usize] += counts[node as usize];
        }
        Self(counts)
    }

    /// Counts of all nodes.
    pub(crate) fn all(&self) -> &[u32] {
        &self.0
    }

    /// Count of a node.
    pub(crate) fn of_node(&self, node: u32) -> u32 {
        self.0[node as usize]
    }
}
