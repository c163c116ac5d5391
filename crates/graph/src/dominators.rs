//! Immediate dominators: for every node the nearest other node that all paths from the root pass.

mod preorder;
mod semi_nca;

use crate::graph::check_rows;
use crate::{Graph, GraphError};
use preorder::Preorder;

/// The immediate dominator of every node, over the essential edges of a graph.
///
/// Every node has one, as in DevTools: a node that no essential edge goes to counts as a child of
/// the root, together with what only it reaches; nodes that are left then (they refer to each other
/// only) hang from the root one by one, and what they refer to takes no notice of them. The root is
/// its own dominator.
#[derive(Debug, Clone)]
pub struct Dominators {
    root: u32,
    idom: Vec<u32>,
    order: Vec<u32>,
}

impl Dominators {
    /// Computes the dominators of `graph` from `root`; `is_essential(edge, from, to)` says which
    /// edges keep their target alive. Edges of a node to itself never matter.
    ///
    /// # Panics
    ///
    /// If `root` is not a node of the graph.
    pub fn of(graph: &Graph, root: u32, is_essential: impl Fn(u32, u32, u32) -> bool) -> Self {
        assert!(root < graph.node_count(), "the root must be a node");
        let preorder = Preorder::of(graph, root, is_essential);
        let Preorder { order, parent, semi, joins, walked_count } = preorder;
        let idom_numbers = semi_nca::immediate_dominators(parent, semi, joins, walked_count);
        let mut idom = vec![root; order.len()];
        for (&node, &dominator) in order.iter().zip(&idom_numbers) {
            idom[node as usize] = order[dominator as usize];
        }
        Self { root, idom, order }
    }

    /// Takes over the dominator of each node, as [`Self::idoms`] gave them, and the nodes by their
    /// dominator: `first_of` each node and the count, in `dominated`.
    ///
    /// Fails if that is no tree below `root`.
    pub fn from_parts(
        root: u32,
        idom: Vec<u32>,
        first_of: &[u32],
        dominated: &[u32],
    ) -> Result<Self, GraphError> {
        let node_count = idom.len() as u32;
        check_rows(first_of, dominated.len(), node_count, node_count, dominated)?;
        let mut order = Vec::with_capacity(idom.len());
        order.push(root);
        let mut at = 0;
        while at < order.len() && order.len() <= idom.len() {
            let node = order[at] as usize;
            at += 1;
            order.extend_from_slice(&dominated[first_of[node] as usize..first_of[node + 1] as usize]);
        }
        if order.len() != idom.len() || idom.iter().any(|&dominator| dominator >= node_count) {
            return Err(GraphError::NoTree { root, found: order.len() as u64, node_count });
        }
        Ok(Self { root, idom, order })
    }

    /// The root.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// The immediate dominator of `node`; the root's is itself.
    #[inline]
    pub fn idom(&self, node: u32) -> u32 {
        self.idom[node as usize]
    }

    /// The immediate dominator of each node.
    pub fn idoms(&self) -> &[u32] {
        &self.idom
    }

    /// All nodes, dominators before what they dominate; the root is the first.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
}

#[cfg(test)]
mod tests;
