//! Dominator tree from the root down.

use crate::Dominators;

/// Nodes that each node immediately dominates, and intervals that show whether one node dominates
/// another.
#[derive(Debug, Clone)]
pub struct DominatorTree {
    first: Vec<u32>,
    children: Vec<u32>,
    /// Position of each node in a walk of the tree.
    position: Vec<u32>,
    /// Position after the last one of each node's subtree.
    end: Vec<u32>,
}

impl DominatorTree {
    /// Sorts the nodes by dominator.
    pub fn of(dominators: &Dominators) -> Self {
        let (first, children) = Self::rows(dominators);
        let (position, end) = intervals(dominators);
        Self { first, children, position, end }
    }

    /// Returns the children of all nodes, grouped by node and descending. The first array holds the
    /// index of each node's first child, followed by the number of children. These arrays are the
    /// tree without the intervals.
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

    /// Returns the nodes whose immediate dominator is `node`, in DevTools' order: descending.
    pub fn children(&self, node: u32) -> &[u32] {
        &self.children[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// Number of nodes that `node` dominates, itself included.
    pub fn subtree_count(&self, node: u32) -> u32 {
        self.end[node as usize] - self.position[node as usize]
    }

    /// Whether every path from the root to `node` passes `dominator`. A node dominates itself.
    pub fn is_dominated_by(&self, node: u32, dominator: u32) -> bool {
        let at = self.position[node as usize];
        self.position[dominator as usize] <= at && at < self.end[dominator as usize]
    }
}

/// Computes the position of each node, and the end of its subtree.
fn intervals(dominators: &Dominators) -> (Vec<u32>, Vec<u32>) {
    let order = dominators.order();
    let mut position = vec![0u32; order.len()];
    for (at, &node) in (0..).zip(order) {
        position[node as usize] = at;
    }
    let mut end = vec![0u32; order.len()];
    for (at, &node) in order.iter().enumerate().rev() {
        let own = end[node as usize].max(at as u32 + 1);
        end[node as usize] = own;
        let above = &mut end[dominators.idom(node) as usize];
        *above = own.max(*above);
    }
    (position, end)
}
