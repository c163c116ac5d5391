//! Objects that no root leads to: garbage that the collector has not come to.

use heapr_v8::EdgeKind;

/// References of all nodes, in columns.
pub(crate) struct Edges<'e> {
    pub(crate) first: &'e [u32],
    pub(crate) targets: &'e [u32],
    pub(crate) kinds: &'e [EdgeKind],
}

impl Edges<'_> {
    fn of(&self, node: u32) -> impl Iterator<Item = usize> {
        let at = |node: usize| self.first.get(node).map_or(self.targets.len(), |&edge| edge as usize);
        at(node as usize)..at(node as usize + 1)
    }

    fn strong(&self, node: u32) -> impl Iterator<Item = u32> {
        self.of(node).filter(|&edge| self.kinds[edge] != EdgeKind::WEAK).map(|edge| self.targets[edge])
    }

    /// Marks a node and all that it leads to. Returns whether it was not marked before.
    fn mark(&self, first: u32, is_reached: &mut [bool]) -> bool {
        if std::mem::replace(&mut is_reached[first as usize], true) {
            return false;
        }
        let mut pending = vec![first];
        while let Some(node) = pending.pop() {
            for target in self.strong(node) {
                if !std::mem::replace(&mut is_reached[target as usize], true) {
                    pending.push(target);
                }
            }
        }
        true
    }

    /// Returns garbage that no other garbage refers to, then an object of each circle. Returns the
    /// edges of garbage to objects that are reached, too: these hold nothing.
    pub(crate) fn garbage(&self, roots: impl Iterator<Item = u32>) -> (Vec<u32>, Vec<usize>) {
        let count = self.first.len() as u32;
        let mut is_reached = vec![false; count as usize];
        for root in roots {
            self.mark(root, &mut is_reached);
        }
        let (mut is_held, mut idle) = (vec![false; count as usize], Vec::new());
        for node in (0..count).filter(|&node| !is_reached[node as usize]) {
            for edge in self.of(node).filter(|&edge| self.kinds[edge] != EdgeKind::WEAK) {
                let target = self.targets[edge] as usize;
                is_held[target] |= target != node as usize;
                if is_reached[target] {
                    idle.push(edge);
                }
            }
        }
        let mut found = Vec::new();
        for holds_circles in [false, true] {
            for node in 0..count {
                if (holds_circles || !is_held[node as usize]) && self.mark(node, &mut is_reached) {
                    found.push(node);
                }
            }
        }
        (found, idle)
    }
}
