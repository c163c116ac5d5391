//! Immediate dominators: for every node, the nearest other node that all paths from the root pass.

mod preorder;
mod semi_nca;

use crate::graph::check_rows;
use crate::{Graph, GraphError};
use preorder::Preorder;

/// Immediate dominator of every node, over the essential edges of a graph.
///
/// Every node has a dominator, as in DevTools. A node without incoming essential edges counts as a
/// child of the root, and so the nodes that only it reaches get dominators too. Remaining nodes
/// refer only to each other; each becomes a child of the root, and their edges are ignored. The
/// root is its own dominator.
#[derive(Debug, Clone)]
pub struct Dominators {
    root: u32,
    idom: Vec<u32>,
    order: Vec<u32>,
}

impl Dominators {
    /// Computes the dominators of `graph` from `root`. `is_essential(edge, from, to)` selects the
    /// edges that keep their target alive. Edges from a node to itself are ignored.
    ///
    /// # Panics
    ///
    /// If `root` is not a node of the graph.
    pub fn of(graph: &Graph, root: u32, is_essential: impl Fn(u32, u32, u32) -> bool) -> Self {
        assert!(root < graph.node_count(), "the root must be a node");
        let preorder = Preorder::of(graph, root, is_essential);
        let Preorder { order, links, semi, join_sources, walked_count } = preorder;
        let idom_numbers = semi_nca::immediate_dominators(links, semi, join_sources, walked_count);
        let mut idom = vec![root; order.len()];
        for (&node, &dominator) in order.iter().zip(&idom_numbers) {
            idom[node as usize] = order[dominator as usize];
        }
        Self { root, idom, order: walk_down(order, &idom_numbers) }
    }

    /// Builds the dominators from stored parts: [`Self::idoms`], and the nodes grouped by
    /// dominator. `first_of` holds the index of each node's first child in `dominated`, followed by
    /// the number of children.
    ///
    /// Fails if the parts are not a tree below `root`.
    pub fn from_parts(
        root: u32,
        idom: Vec<u32>,
        first_of: &[u32],
        dominated: &[u32],
    ) -> Result<Self, GraphError> {
        let node_count = idom.len() as u32;
        check_rows(first_of, dominated.len(), node_count, node_count, dominated)?;
        let mut order = Vec::with_capacity(idom.len());
        let mut pending = vec![root];
        // A tree has each node once.
        while order.len() + pending.len() <= idom.len()
            && let Some(node) = pending.pop()
        {
            order.push(node);
            let node = node as usize;
            pending.extend(dominated[first_of[node] as usize..first_of[node + 1] as usize].iter().rev());
        }
        let found = (order.len() + pending.len()) as u64;
        if found != u64::from(node_count) || idom.iter().any(|&dominator| dominator >= node_count) {
            return Err(GraphError::NoTree { root, found, node_count });
        }
        Ok(Self { root, idom, order })
    }

    /// Root node.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Immediate dominator of `node`; the root is its own.
    #[inline]
    pub fn idom(&self, node: u32) -> u32 {
        self.idom[node as usize]
    }

    /// Immediate dominator of each node.
    pub fn idoms(&self) -> &[u32] {
        &self.idom
    }

    /// All nodes in the order of a walk down the tree: each is followed by all that it dominates.
    /// The root is first.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
}

/// Sorts the nodes by a walk down the dominator tree. `order` has the node of each number, and a
/// dominator's number is below those of what it dominates.
fn walk_down(order: Vec<u32>, idom_numbers: &[u32]) -> Vec<u32> {
    // Size of the subtree of each number; once the number has its place, the place of its next
    // child.
    let mut slots = vec![1_u32; order.len()];
    for number in (1..order.len()).rev() {
        slots[idom_numbers[number] as usize] += slots[number];
    }
    let mut walk = vec![order[0]; order.len()];
    slots[0] = 1;
    for number in 1..order.len() {
        let size = slots[number];
        let slot = &mut slots[idom_numbers[number] as usize];
        let place = *slot;
        *slot += size;
        slots[number] = place + 1;
        walk[place as usize] = order[number];
    }
    walk
}

#[cfg(test)]
mod tests;
