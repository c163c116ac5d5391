//! The nodes in the order of a walk down the dominator tree, and how many each one dominates.

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
        // Where the next child of each node goes; a node takes its place before its children do.
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

    /// Dominators before what they dominate, each subtree in one piece.
    pub(crate) fn walk(&self) -> &[u32] {
        &self.walk
    }

    /// How many nodes each node dominates, itself included.
    pub(crate) fn subtree_counts(&self) -> &[u32] {
        &self.subtree_count
    }

    /// How many nodes `node` dominates, itself included.
    pub(crate) fn subtree_count(&self, node: u32) -> u32 {
        self.subtree_count[node as usize]
    }
}
