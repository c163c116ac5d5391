//! Decides which references count when holders are determined.
//!
//! A reference that is doubtful, or lies on a stack or in a register, counts only for blocks that
//! no sure and lasting reference reaches. Otherwise every loop over a cache would share the cache
//! with its owner, and so would stale words in unused memory.

use heapr_trace::{HeapGraph, RootClass, RootEdge};

/// For each block whether sure references lead to it from a lasting root.
#[derive(Debug)]
pub struct LastingReferences(Vec<bool>);

impl LastingReferences {
    /// Follows the sure references from all lasting roots.
    #[must_use]
    pub fn of(graph: &HeapGraph) -> Self {
        let mut kept = vec![false; graph.node_count() as usize];
        let mut stack: Vec<u32> = Vec::new();
        let enter = |block: u32, kept: &mut [bool], stack: &mut Vec<u32>| {
            if !std::mem::replace(&mut kept[block as usize], true) {
                stack.push(block);
            }
        };
        for root in graph.roots.iter().filter(|root| is_lasting(graph, root)) {
            enter(root.target, &mut kept, &mut stack);
        }
        while let Some(block) = stack.pop() {
            for edge in graph.edges(block) {
                if graph.grades[edge].is_strong() {
                    enter(graph.targets[edge], &mut kept, &mut stack);
                }
            }
        }
        Self(kept)
    }

    /// Whether a reference from a root counts.
    #[must_use]
    pub fn counts_root(&self, graph: &HeapGraph, root: &RootEdge) -> bool {
        is_lasting(graph, root) || !self.0[root.target as usize]
    }

    /// Whether a reference from a block counts, by the edge's number.
    #[must_use]
    pub fn counts_edge(&self, graph: &HeapGraph, edge: usize) -> bool {
        graph.grades[edge].is_strong() || !self.0[graph.targets[edge] as usize]
    }
}

/// Whether a reference from a root is sure, and lies outside of stacks and registers.
fn is_lasting(graph: &HeapGraph, root: &RootEdge) -> bool {
    let class = graph.areas[root.area as usize].class;
    let is_passing = matches!(class, RootClass::Registers | RootClass::Stack | RootClass::Frame);
    root.grade.is_strong() && !is_passing
}
