//! The dominator tree from the root down.

use crate::Dominators;

/// The nodes that each node immediately dominates, and intervals that answer whether one node
/// dominates another.
#[derive(Debug, Clone)]
pub struct DominatorTree {
    first: Vec<u32>,
    children: Vec<u32>,
    /// Position in a walk of the tree.
    position: Vec<u32>,
    /// One behind the last position of the node's subtree.
    end: Vec<u32>,
}

impl DominatorTree {
    /// Sorts the nodes by dominator.
    pub fn of(dominators: &Dominators) -> Self {
        let (first, children) = Self::rows(dominators);
        let (position, end) = intervals(dominators);
        Self { first, children, position, end }
    }

    /// The children of all nodes, by node and descending, and the position of each node's first
    /// one, with their count at the end: the tree without what answers whether one node
    /// dominates another.
    pub fn rows(dominators: &Dominators) -> (Vec<u32>, Vec<u32>) {
        let idoms = dominators.idoms();
        let root = dominators.root();
        let mut first = vec![0u32; idoms.len() + 1];
        for (node, &idom) in idoms.iter().enumerate() {
            if node as u32 != root {
                first[idom as usize] += 1;
            }
        }
        let mut end = 0;
        for slot in &mut first {
            end += *slot;
            *slot = end;
        }
        let mut children = vec![0u32; end as usize];
        for (node, &idom) in idoms.iter().enumerate() {
            if node as u32 != root {
                let slot = &mut first[idom as usize];
                *slot -= 1;
                children[*slot as usize] = node as u32;
            }
        }
        (first, children)
    }

    /// The nodes whose immediate dominator is `node`, in the order that DevTools shows: descending.
    pub fn children(&self, node: u32) -> &[u32] {
        &self.children[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// How many nodes `node` dominates, itself included.
    pub fn subtree_count(&self, node: u32) -> u32 {
        self.end[node as usize] - self.position[node as usize]
    }

    /// Whether every path from the root to `node` passes `dominator`. A node dominates itself.
    pub fn is_dominated_by(&self, node: u32, dominator: u32) -> bool {
        let at = self.position[node as usize];
        self.position[dominator as usize] <= at && at < self.end[dominator as usize]
    }
}

/// Positions and ends of subtrees without walking the tree: subtree sizes from the bottom up, then
/// each node takes its place in what its dominator has left.
fn intervals(dominators: &Dominators) -> (Vec<u32>, Vec<u32>) {
    let order = dominators.order();
    let mut size = vec![1u32; order.len()];
    for &node in order[1..].iter().rev() {
        size[dominators.idom(node) as usize] += size[node as usize];
    }
    let mut position = vec![0u32; order.len()];
    let mut next = vec![0u32; order.len()];
    next[order[0] as usize] = 1;
    for &node in &order[1..] {
        let slot = &mut next[dominators.idom(node) as usize];
        let at = *slot;
        *slot += size[node as usize];
        position[node as usize] = at;
        next[node as usize] = at + 1;
    }
    // What a node's children have filled ends where its subtree does.
    (position, next)
}
