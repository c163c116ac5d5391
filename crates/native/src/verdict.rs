//! Reachability of each block: certain, doubtful, or none.

use heapr_trace::{HeapGraph, RootEdge};

/// Reachability of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reach {
    /// Reached from a root by sure references.
    Reachable,
    /// Reached from roots only by paths with a doubtful reference.
    Possible,
    /// Not reached.
    Unreached,
}

/// Reachability of all blocks.
#[derive(Debug, Clone)]
pub struct Verdicts {
    reach: Vec<Reach>,
}

impl Verdicts {
    /// Walks from the roots. `is_kept`: blocks that count as reachable in any case.
    pub fn of(graph: &HeapGraph, is_kept: impl Fn(u32) -> bool) -> Self {
        let mut walk =
            Walk { graph, reach: vec![Reach::Unreached; graph.node_count() as usize], stack: Vec::new() };
        let is_strong = |root: &&RootEdge| root.grade.is_strong();
        for root in graph.roots.iter().filter(is_strong) {
            walk.enter(root.target, Reach::Reachable);
        }
        for node in 0..graph.node_count() {
            if is_kept(node) {
                walk.enter(node, Reach::Reachable);
            }
        }
        walk.strongly();
        for root in graph.roots.iter().filter(|root| !root.grade.is_strong()) {
            walk.enter(root.target, Reach::Possible);
        }
        // Targets of doubtful references from reachable blocks. The targets of sure ones are
        // reachable already.
        for node in 0..graph.node_count() {
            if walk.reach[node as usize] != Reach::Reachable {
                continue;
            }
            for edge in graph.edges(node) {
                if !graph.grades[edge].is_strong() {
                    walk.enter(graph.targets[edge], Reach::Possible);
                }
            }
        }
        walk.in_doubt();
        Self { reach: walk.reach }
    }

    /// Reachability of a block.
    pub fn reach(&self, node: u32) -> Reach {
        self.reach[node as usize]
    }
}

struct Walk<'a> {
    graph: &'a HeapGraph,
    reach: Vec<Reach>,
    stack: Vec<u32>,
}

impl Walk<'_> {
    fn enter(&mut self, node: u32, reach: Reach) {
        let known = &mut self.reach[node as usize];
        if *known == Reach::Unreached {
            *known = reach;
            self.stack.push(node);
        }
    }

    fn strongly(&mut self) {
        while let Some(node) = self.stack.pop() {
            for edge in self.graph.edges(node) {
                if self.graph.grades[edge].is_strong() {
                    self.enter(self.graph.targets[edge], Reach::Reachable);
                }
            }
        }
    }

    fn in_doubt(&mut self) {
        while let Some(node) = self.stack.pop() {
            for edge in self.graph.edges(node) {
                self.enter(self.graph.targets[edge], Reach::Possible);
            }
        }
    }
}
