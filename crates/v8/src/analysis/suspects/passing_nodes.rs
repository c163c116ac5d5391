//! Nodes that only a root leads to whose objects are no leak, such as garbage.

use super::super::heap_view::HeapView;
use crate::languages::Language;

/// Roots whose objects are no leak, with what they alone lead to.
pub(super) struct PassingNodes {
    /// Reasons, one a root.
    reasons: Vec<&'static str>,
    /// Number of the reason of each node, from 1; empty if no such root exists.
    of_node: Vec<u8>,
}

impl PassingNodes {
    /// Finds the nodes of a heap.
    pub(super) fn of<H: HeapView>(heap: &H) -> Self {
        let mut found = Self { reasons: Vec::new(), of_node: Vec::new() };
        if heap.meta().dialect.is_none() {
            return found;
        }
        let language: &dyn Language = heap.meta().language();
        let dominators = heap.dominators();
        let root = dominators.root();
        let mut rows = Vec::new();
        for edge in heap.graph().edges(root) {
            let row = heap.graph().target(edge);
            if dominators.idom(row) == root
                && let Some(reason) = language.no_leak(&heap.name(row))
                && found.reasons.len() < usize::from(u8::MAX)
            {
                found.reasons.push(reason);
                rows.push(row);
            }
        }
        if rows.is_empty() {
            return found;
        }
        found.of_node = vec![0; heap.graph().node_count() as usize];
        for (number, row) in (1..).zip(rows) {
            found.of_node[row as usize] = number;
        }
        // A dominator comes before what it dominates.
        for &node in dominators.order() {
            if found.of_node[node as usize] == 0 && node != root {
                found.of_node[node as usize] = found.of_node[dominators.idom(node) as usize];
            }
        }
        found
    }

    /// Returns why a node is no leak, if only such a root leads to it.
    pub(super) fn no_leak(&self, node: u32) -> Option<&'static str> {
        let number = *self.of_node.get(node as usize)?;
        self.reasons.get(usize::from(number.checked_sub(1)?)).copied()
    }
}
