//! Objects that no root leads to: held by native memory, or garbage that the collector has not come
//! to yet.
//!
//! As the collector does it: an object with more references than the others of its kind explain is
//! held from outside.

use super::objects::reference_count;
use super::reader::Reader;
use crate::heap::{Edge, EdgeKind, EdgeName, NodeKind, RootKind};

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
        let mut reached = vec![false; self.heap.nodes.len()];
        let targets: Vec<u32> =
            self.heap.roots.iter().flat_map(|root| root.edges.iter().map(|edge| edge.target)).collect();
        self.reach(&targets, &mut reached);
        reached
    }

    /// Marks nodes, and all that they lead to.
    pub(super) fn reach(&self, from: &[u32], reached: &mut [bool]) {
        let mut pending: Vec<u32> = from.to_vec();
        while let Some(node) = pending.pop() {
            match reached.get_mut(node as usize) {
                Some(is_reached) if !*is_reached => *is_reached = true,
                _ => continue,
            }
            let strong = self.heap.edges_of(node).iter().filter(|edge| edge.name.kind() != EdgeKind::Weak);
            pending.extend(strong.map(|edge| edge.target).filter(|&target| !reached[target as usize]));
        }
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
        let outside = self.edges_to(&held, reached);
        self.let_go_by_garbage(&nodes, reached);
        // The rest is garbage: first what no other garbage refers to, then one of each circle.
        let alone = nodes.iter().zip(&inner).filter(|&(_, &inner)| inner == 0).map(|(&node, _)| node);
        let order: Vec<u32> = alone.chain(nodes.iter().copied()).collect();
        let edges = self.edges_to(&order, reached);
        self.push_root("(held by native code)".to_owned(), RootKind::Runtime, 0, outside);
        self.push_root("(garbage, not yet collected)".to_owned(), RootKind::Garbage, 0, edges);
    }

    /// Makes references of garbage to objects that live hold nothing, so that garbage is never an
    /// owner. `nodes`: those that no root leads to, garbage among them.
    fn let_go_by_garbage(&mut self, nodes: &[u32], lives: &[bool]) {
        let name = self.weak("(garbage)");
        for &node in nodes.iter().filter(|&&node| !lives[node as usize]) {
            for edge in self.heap.edges_of_mut(node) {
                if lives[edge.target as usize] {
                    edge.name = name;
                }
            }
        }
    }

    /// Marks nodes with all that they lead to; returns references to those that were not marked.
    fn edges_to(&self, nodes: &[u32], reached: &mut [bool]) -> Vec<Edge> {
        let mut edges = Vec::new();
        for &node in nodes {
            if !reached[node as usize] {
                edges.push(Edge { target: node, name: EdgeName::item(edges.len() as u64) });
                self.reach(&[node], reached);
            }
        }
        edges
    }
}
