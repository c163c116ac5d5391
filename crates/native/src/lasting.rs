//! Which references count for who holds what.
//!
//! Those that are doubtful, or stand on a stack or in a register, count only for blocks that
//! nothing sure and lasting leads to: else every loop over a cache would share it with the cache,
//! and so would every word that has stayed behind in memory of nobody.

use heapr_trace::{HeapGraph, RootClass, RootEdge};

/// By block whether sure references lead to it from where it stays.
#[derive(Debug)]
pub struct LastingReferences(Vec<bool>);

impl LastingReferences {
    /// Follows them.
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

    /// Whether a reference from outside counts.
    #[must_use]
    pub fn counts_root(&self, graph: &HeapGraph, root: &RootEdge) -> bool {
        is_lasting(graph, root) || !self.0[root.target as usize]
    }

    /// Whether a reference from a block counts, by its number.
    #[must_use]
    pub fn counts_edge(&self, graph: &HeapGraph, edge: usize) -> bool {
        graph.grades[edge].is_strong() || !self.0[graph.targets[edge] as usize]
    }
}

/// Whether a reference from outside is sure, and does not stand there in passing.
fn is_lasting(graph: &HeapGraph, root: &RootEdge) -> bool {
    let class = graph.areas[root.area as usize].class;
    let is_passing = matches!(class, RootClass::Registers | RootClass::Stack | RootClass::Frame);
    root.grade.is_strong() && !is_passing
}
