//! Trees cut to their greatest nodes, and their depth-first order.

use std::cmp::Reverse;

use hashbrown::HashMap;

/// A node at its position in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// Number of the node.
    pub node: u32,
    /// Index of the node above; `None` for the root.
    pub parent: Option<usize>,
    /// Number of steps from the root.
    pub depth: usize,
}

/// The `most` greatest nodes, greatest first; ties are broken by the lower number, that of the node
/// above. A node is at most as great as the one above it, so that the result is a tree.
pub fn greatest(mut nodes: Vec<u32>, most: usize, amount_of: impl Fn(u32) -> u64) -> Vec<u32> {
    let order = |&node: &u32| (Reverse(amount_of(node)), node);
    if nodes.len() > most {
        nodes.select_nth_unstable_by_key(most, order);
        nodes.truncate(most);
    }
    nodes.sort_unstable_by_key(order);
    nodes
}

/// The root and the nodes of `order` in depth-first order; siblings are ordered as in `order`.
pub fn depth_first(root: u32, order: &[u32], parent_of: impl Fn(u32) -> u32) -> Vec<Placed> {
    // Children are in reverse, because the stack below takes them from the end.
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for &node in order.iter().rev() {
        children.entry(parent_of(node)).or_default().push(node);
    }
    let mut placed = Vec::with_capacity(order.len() + 1);
    let mut pending = vec![Placed { node: root, parent: None, depth: 0 }];
    while let Some(next) = pending.pop() {
        let at = placed.len();
        placed.push(next);
        let below = children.remove(&next.node).unwrap_or_default();
        pending.extend(below.into_iter().map(|node| Placed {
            node,
            parent: Some(at),
            depth: next.depth + 1,
        }));
    }
    placed
}
