//! Trees of frames with the amounts allocated below them: from the program's start down, or from a
//! frame to its callers.

use hashbrown::HashMap;
use heapr_trace::{Amounts, StackIndex};

use crate::frames::FrameId;
use crate::metrics::Metric;
use crate::tree_order::{Placed, depth_first, greatest};

/// A node of a [`CallTree`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallNode {
    /// Index of the node above; `None` for a root.
    pub parent: Option<usize>,
    /// Number of nodes above.
    pub depth: usize,
    /// Frame of the node.
    pub(crate) frame: FrameId,
    /// A stack that passes through the node, for the frame's source line.
    pub(crate) representative: StackIndex,
    /// Amounts of the allocations whose stacks pass through the node.
    pub amounts: Amounts,
}

/// Nodes in the order in which they are printed: each is followed by the nodes below it, the
/// greatest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTree {
    /// The nodes.
    pub nodes: Vec<CallNode>,
    /// Number of all nodes, including those that the limit leaves out.
    pub node_count: usize,
    /// Sum over all rows of the tree.
    pub amounts: Amounts,
}

/// Builds a tree path by path.
#[derive(Debug, Default)]
pub(crate) struct CallTreeBuilder {
    nodes: Vec<Growing>,
    /// Number of each node, by (number of the node above + 1 or 0, frame).
    numbers: HashMap<(u32, FrameId), u32>,
    amounts: Amounts,
}

#[derive(Debug)]
struct Growing {
    /// Number of the node above + 1, or 0.
    above: u32,
    frame: FrameId,
    representative: StackIndex,
    amounts: Amounts,
}

impl CallTreeBuilder {
    /// Adds amounts to each node of a path, which begins at its root.
    pub(crate) fn add(&mut self, path: &[FrameId], representative: StackIndex, amounts: &Amounts) {
        self.amounts += amounts;
        let mut above = 0;
        for &frame in path {
            let nodes = &mut self.nodes;
            let number = *self.numbers.entry((above, frame)).or_insert_with(|| {
                nodes.push(Growing { above, frame, representative, amounts: Amounts::default() });
                nodes.len() as u32 - 1
            });
            nodes[number as usize].amounts += amounts;
            above = number + 1;
        }
    }

    /// Finishes the tree and cuts it to the `top` nodes with the greatest amounts. (A node's amount
    /// is at most that of the node above, so that the remaining nodes form a tree.)
    pub(crate) fn finish(self, sort: Metric, top: usize) -> CallTree {
        let node_count = self.nodes.len();
        // Numbers begin at 1: roots lie below node 0.
        let growing = |number: u32| &self.nodes[number as usize - 1];
        let all = (1..=node_count as u32).collect();
        let order = greatest(all, top, |number| sort.of(&growing(number).amounts));
        let placed = depth_first(0, &order, |number| growing(number).above);
        let node = |placed: &Placed| CallNode {
            parent: placed.parent.and_then(|parent| parent.checked_sub(1)),
            depth: placed.depth - 1,
            frame: growing(placed.node).frame,
            representative: growing(placed.node).representative,
            amounts: growing(placed.node).amounts,
        };
        let nodes = placed[1..].iter().map(node).collect();
        CallTree { nodes, node_count, amounts: self.amounts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(total_bytes: u64) -> Amounts {
        Amounts { total_bytes, ..Amounts::default() }
    }

    fn tree(top: usize) -> Vec<(usize, u32, u64)> {
        let mut builder = CallTreeBuilder::default();
        let path = |frames: &[u32]| frames.iter().map(|&frame| FrameId(frame)).collect::<Vec<_>>();
        builder.add(&path(&[1, 2, 3]), StackIndex(1), &bytes(5));
        builder.add(&path(&[1, 4]), StackIndex(2), &bytes(20));
        builder.add(&path(&[1, 2]), StackIndex(3), &bytes(1));
        builder.add(&path(&[7]), StackIndex(4), &bytes(100));
        let tree = builder.finish(Metric::TotalBytes, top);
        assert_eq!((tree.node_count, tree.amounts.total_bytes), (5, 126));
        tree.nodes.iter().map(|node| (node.depth, node.frame.0, node.amounts.total_bytes)).collect()
    }

    #[test]
    fn each_node_is_followed_by_what_is_below_it_the_greatest_first() {
        assert_eq!(tree(100), [(0, 7, 100), (0, 1, 26), (1, 4, 20), (1, 2, 6), (2, 3, 5)]);
    }

    #[test]
    fn the_limit_leaves_a_tree_of_the_greatest() {
        assert_eq!(tree(3), [(0, 7, 100), (0, 1, 26), (1, 4, 20)]);
        assert_eq!(tree(0), []);
    }
}
