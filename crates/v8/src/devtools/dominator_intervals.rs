//! Nodes in the order of a walk down the dominator tree, and the size of each node's subtree.

use heapr_graph::Dominators;

#[derive(Debug)]
pub(crate) struct DominatorIntervals {
    walk: Vec<u32>,
    subtree_count: Vec<u32>,
}

impl DominatorIntervals {
    pub(crate) fn of(dominators: &Dominators) -> Self {
        let order = dominators.order();
        let mut subtree_count = vec![1u32; order.len()];
        for &node in order[1..].iter().rev() {
            subtree_count[dominators.idom(node) as usize] += subtree_count[node as usize];
        }
        // Position of the next child of each node; a node is placed before its children.
        let mut next = vec![0u32; order.len()];
        let mut walk = vec![0u32; order.len()];
        next[order[0] as usize] = 1;
        walk[0] = order[0];
        for &node in &order[1..] {
            let slot = &mut next[dominators.idom(node) as usize];
            let at = *slot;
            *slot += subtree_count[node as usize];
            next[node as usize] = at + 1;
            walk[at as usize] = node;
        }
        Self { walk, subtree_count }
    }

    /// Nodes with dominators before the dominated, each subtree contiguous.
    pub(crate) fn walk(&self) -> &[u32] {
        &self.walk
    }

    /// Number of nodes that each node dominates, itself included.
    pub(crate) fn subtree_counts(&self) -> &[u32] {
        &self.subtree_count
    }

    /// Number of nodes that `node` dominates, itself included.
    pub(crate) fn subtree_count(&self, node: u32) -> u32 {
        self.subtree_count[node as usize]
    }
}
