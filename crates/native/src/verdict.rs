//! How each block is held: without doubt, in doubt, or not at all.

use heapr_trace::{HeapGraph, RootEdge};

/// How a block is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reach {
    /// A way of sure references leads from a root to it.
    Reachable,
    /// Each way to it from a root has a doubtful reference.
    Possible,
    /// No way leads to it.
    Unreached,
}

/// By block.
#[derive(Debug, Clone)]
pub struct Verdicts {
    reach: Vec<Reach>,
}

impl Verdicts {
    /// Walks from the roots. `is_kept`: blocks that count as held without doubt, whoever holds
    /// them.
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
        // What the blocks that are held refer to in doubt. (Where sure ones lead is known.)
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

    /// How a block is held.
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
