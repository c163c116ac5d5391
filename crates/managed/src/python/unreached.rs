//! Objects that no root leads to: held by native memory, or garbage that the collector has not come
//! to yet.
//!
//! As the collector does it: an object with more references than the others of its kind explain is
//! held from outside.

use super::objects::reference_count;
use super::reader::Reader;
use crate::heap::{EdgeKind, NodeKind, RootKind};
use crate::reach::{edges_to, let_go, reach, reached_by_roots};

/// Nodes that no root leads to, and the number of references to each from the others.
#[derive(Debug)]
pub(super) struct Unreached {
    /// By number.
    nodes: Vec<u32>,
    inner: Vec<u32>,
}

impl Unreached {
    /// Number of references to a node from nodes that no root leads to.
    pub(super) fn inner_of(&self, node: u32) -> u64 {
        self.nodes.binary_search(&node).map_or(0, |at| self.inner[at].into())
    }
}

impl Reader<'_, '_> {
    /// Finds the nodes that are not among the reached ones.
    pub(super) fn unreached(&self, reached: &[bool]) -> Unreached {
        let nodes: Vec<u32> =
            (0..reached.len()).filter(|&node| !reached[node]).map(|node| node as u32).collect();
        let mut inner = vec![0_u32; nodes.len()];
        for &node in &nodes {
            for edge in self.heap.edges_of(node) {
                if edge.name.kind() != EdgeKind::Weak
                    && let Ok(at) = nodes.binary_search(&edge.target)
                {
                    inner[at] = inner[at].saturating_add(1);
                }
            }
        }
        Unreached { nodes, inner }
    }

    /// Returns which nodes the roots lead to.
    pub(super) fn reached_by_roots(&self) -> Vec<bool> {
        reached_by_roots(&self.heap)
    }

    /// Marks nodes, and all that they lead to.
    pub(super) fn reach(&self, from: &[u32], reached: &mut [bool]) {
        reach(&self.heap, from, reached);
    }

    /// Adds roots for the objects that no other root leads to.
    pub(super) fn add_unreached(&mut self, reached: &mut Vec<bool>) {
        let node_count = self.heap.nodes.len();
        reached.resize(node_count, false);
        let Unreached { nodes, inner } = self.unreached(reached);
        let is_held_outside = |(node, inner): (&u32, &u32)| {
            let facts = &self.heap.nodes[*node as usize];
            if self.heap.label_of(facts).kind == NodeKind::Block {
                return None;
            }
            let count = self.pages.word_or_zero(facts.address_avma);
            let is_held =
                reference_count(count, self.layout.version).is_none_or(|count| count > u64::from(*inner));
            is_held.then_some(*node)
        };
        let held: Vec<u32> = nodes.iter().zip(&inner).filter_map(is_held_outside).collect();
        let outside = edges_to(&self.heap, &held, reached);
        let weak = self.weak("(garbage)");
        let_go(&mut self.heap, &nodes, reached, weak);
        // The rest is garbage: first what no other garbage refers to, then one of each circle.
        let alone = nodes.iter().zip(&inner).filter(|&(_, &inner)| inner == 0).map(|(&node, _)| node);
        let order: Vec<u32> = alone.chain(nodes.iter().copied()).collect();
        let edges = edges_to(&self.heap, &order, reached);
        self.push_root("(held by native code)".to_owned(), RootKind::Runtime, 0, outside);
        self.push_root("(garbage, not yet collected)".to_owned(), RootKind::Garbage, 0, edges);
    }
}
