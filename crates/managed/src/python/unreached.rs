//! Objects that no root leads to: held by native memory, or garbage that the collector has not come
//! to yet.
//!
//! As the collector does it: an object with more references than the others of its kind explain is
//! held from outside.

use super::objects::reference_count;
use super::reader::Reader;
use crate::heap::{Edge, EdgeKind, EdgeName, NodeKind, RootKind};

impl Reader<'_, '_> {
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
        let mut inner = vec![0_u32; node_count];
        for node in (0..node_count).filter(|&node| !reached[node]) {
            for edge in self.heap.edges_of(node as u32) {
                if edge.name.kind() != EdgeKind::Weak && !reached[edge.target as usize] {
                    inner[edge.target as usize] = inner[edge.target as usize].saturating_add(1);
                }
            }
        }
        let is_held_outside = |node: usize| {
            let facts = &self.heap.nodes[node];
            if facts.kind == NodeKind::Block {
                return false;
            }
            let count = self.pages.word_or_zero(facts.address_avma);
            reference_count(count, self.layout.version).is_none_or(|count| count > u64::from(inner[node]))
        };
        let held: Vec<u32> = (0..node_count)
            .filter(|&node| !reached[node] && is_held_outside(node))
            .map(|node| node as u32)
            .collect();
        let outside = self.edges_to(&held, reached);
        // The rest is garbage: first what no other garbage refers to, then one of each circle.
        let mut garbage: Vec<u32> = Vec::new();
        let rest = |reached: &[bool], node: usize| !reached[node];
        garbage.extend(
            (0..node_count).filter(|&node| rest(reached, node) && inner[node] == 0).map(|node| node as u32),
        );
        let mut edges = self.edges_to(&garbage, reached);
        let circles: Vec<u32> =
            (0..node_count).filter(|&node| rest(reached, node)).map(|node| node as u32).collect();
        edges.extend(self.edges_to(&circles, reached));
        self.push_root("(held by native code)".to_owned(), RootKind::Runtime, 0, outside);
        self.push_root("(garbage, not yet collected)".to_owned(), RootKind::Garbage, 0, edges);
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
