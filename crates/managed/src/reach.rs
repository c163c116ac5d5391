//! Nodes that the roots of a heap lead to, and those that they do not.

use crate::heap::{Edge, EdgeKind, EdgeName, ManagedHeap};

/// Returns which nodes the roots lead to.
pub(crate) fn reached_by_roots(heap: &ManagedHeap) -> Vec<bool> {
    let mut reached = vec![false; heap.nodes.len()];
    let targets: Vec<u32> =
        heap.roots.iter().flat_map(|root| root.edges.iter().map(|edge| edge.target)).collect();
    reach(heap, &targets, &mut reached);
    reached
}

/// Marks nodes, and all that they lead to.
pub(crate) fn reach(heap: &ManagedHeap, from: &[u32], reached: &mut [bool]) {
    let mut pending: Vec<u32> = from.to_vec();
    while let Some(node) = pending.pop() {
        match reached.get_mut(node as usize) {
            Some(is_reached) if !*is_reached => *is_reached = true,
            _ => continue,
        }
        let strong = heap.edges_of(node).iter().filter(|edge| edge.name.kind() != EdgeKind::Weak);
        pending.extend(strong.map(|edge| edge.target).filter(|&target| !reached[target as usize]));
    }
}

/// Marks nodes with all that they lead to; returns references to those that were not marked.
pub(crate) fn edges_to(heap: &ManagedHeap, nodes: &[u32], reached: &mut [bool]) -> Vec<Edge> {
    let mut edges = Vec::new();
    for &node in nodes {
        if !reached[node as usize] {
            edges.push(Edge { target: node, name: EdgeName::item(edges.len() as u64) });
            reach(heap, &[node], reached);
        }
    }
    edges
}

/// Makes references of garbage to objects that live hold nothing, so that garbage is never an
/// owner. `nodes`: those that no root leads to, garbage among them. `name`: that of such
/// references.
pub(crate) fn let_go(heap: &mut ManagedHeap, nodes: &[u32], lives: &[bool], name: EdgeName) {
    for &node in nodes.iter().filter(|&&node| !lives[node as usize]) {
        for edge in heap.edges_of_mut(node) {
            if lives[edge.target as usize] {
                edge.name = name;
            }
        }
    }
}
