//! Parts of containers, recognised by their references to each other. Links of a list lead back to
//! each other, nodes of a tree to their parents, and elements of a hash table form a chain.

use heapr_trace::EdgeGrade;

use crate::scanned::Scanned;
use crate::shapes::{Chain, Shape};

/// The references of a scan, for lookups by block and word.
pub(crate) struct Links<'a> {
    pub(crate) found: &'a Scanned,
    /// First word of each block.
    pub(crate) heads: &'a [u64],
}

/// Number of references of a block that are examined.
const LOOKED_AT: usize = 6;

impl Links<'_> {
    fn edges(&self, node: u32) -> std::ops::Range<usize> {
        let first = &self.found.first_edge;
        first[node as usize] as usize..first[node as usize + 1] as usize
    }

    /// The block to whose start a word leads.
    fn at(&self, node: u32, slot: u32) -> Option<u32> {
        let mut few = self.edges(node).take(LOOKED_AT);
        let edge =
            few.find(|&edge| self.found.slots[edge] == slot && self.found.grades[edge] == EdgeGrade::Start)?;
        Some(self.found.targets[edge])
    }

    /// Classifies blocks that are still open (`is_open`).
    pub(crate) fn tell(&self, shapes: &mut [Shape], chains: &[Chain], is_open: impl Fn(u32) -> bool) {
        let count = shapes.len() as u32;
        self.tell_chains(shapes, chains);
        for node in 0..count {
            if shapes[node as usize] == Shape::DequeMap {
                self.tell_chunks(node, shapes);
            }
        }
        for node in 0..count {
            if shapes[node as usize] != Shape::None || !is_open(node) {
                continue;
            }
            if self.is_link(node) {
                shapes[node as usize] = Shape::ListNode;
            } else if self.is_tree_node(node) {
                shapes[node as usize] = Shape::TreeNode;
            }
        }
        // The ends of a ring whose head lies outside of a block.
        for node in 0..count {
            if shapes[node as usize] == Shape::None && is_open(node) && self.is_next_to_link(node, shapes) {
                shapes[node as usize] = Shape::ListNode;
            }
        }
    }

    fn tell_chains(&self, shapes: &mut [Shape], chains: &[Chain]) {
        // A chain with a wrong length stops at the first classified block.
        for chain in chains {
            let (mut next, mut left) = (Some(chain.first), chain.count);
            while let Some(node) = next.filter(|_| left > 0) {
                if shapes[node as usize] != Shape::None {
                    break;
                }
                shapes[node as usize] = Shape::HashNode;
                (next, left) = (self.at(node, 0), left - 1);
            }
        }
    }

    fn tell_chunks(&self, map: u32, shapes: &mut [Shape]) {
        for edge in self.edges(map) {
            let shape = &mut shapes[self.found.targets[edge] as usize];
            if self.found.grades[edge] == EdgeGrade::Start && *shape == Shape::None {
                *shape = Shape::DequeChunk;
            }
        }
    }

    fn is_link(&self, node: u32) -> bool {
        let (Some(next), Some(last)) = (self.at(node, 0), self.at(node, 1)) else { return false };
        next != node && self.at(next, 1) == Some(node) && self.at(last, 0) == Some(node)
    }

    fn is_next_to_link(&self, node: u32, shapes: &[Shape]) -> bool {
        let is_next = |slot: u32, back: u32| {
            let other = self.at(node, slot);
            let other = other.filter(|&other| shapes[other as usize] == Shape::ListNode);
            other.is_some_and(|other| self.at(other, back) == Some(node))
        };
        is_next(0, 1) || is_next(1, 0)
    }

    /// Whether a block is a node of a red-black tree of the GNU library: colour, parent, two
    /// children.
    fn is_tree_node(&self, node: u32) -> bool {
        let is_colour = |node: u32| self.heads[node as usize] as u32 <= 1;
        if !is_colour(node) {
            return false;
        }
        let parent = self.at(node, 1);
        let children = [2, 3].map(|slot| self.at(node, slot));
        let knows = |child: u32| is_colour(child) && self.at(child, 1) == Some(node);
        if children.into_iter().flatten().any(|child| !knows(child)) {
            return false;
        }
        let is_child = |parent: u32| [2, 3].iter().any(|&slot| self.at(parent, slot) == Some(node));
        children.iter().any(Option::is_some) || parent.is_some_and(|it| is_colour(it) && is_child(it))
    }

    /// Blocks whose first word equals the number of references to them, at least 2.
    pub(crate) fn counted(&self, is_open: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut counts = vec![0_u32; self.heads.len()];
        let edges = self.found.targets.iter().zip(&self.found.grades);
        let roots = self.found.roots.iter().map(|root| (&root.target, &root.grade));
        for (&target, _) in edges.chain(roots).filter(|(_, grade)| **grade == EdgeGrade::Start) {
            counts[target as usize] = counts[target as usize].saturating_add(1);
        }
        let is_counted = |&node: &u32| {
            let count = counts[node as usize];
            count >= 2 && u64::from(count) == self.heads[node as usize] && is_open(node)
        };
        (0..self.heads.len() as u32).filter(is_counted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Classifies blocks given by their references: word and target.
    fn shapes(blocks: &[&[(u32, u32)]], heads: &[u64], shapes: &mut [Shape], chains: &[Chain]) {
        let mut found = Scanned { first_edge: vec![0], ..Scanned::default() };
        for (slot, target) in blocks.iter().flat_map(|edges| edges.iter()) {
            found.slots.push(*slot);
            found.targets.push(*target);
            found.grades.push(EdgeGrade::Start);
        }
        let mut end = 0;
        for edges in blocks {
            end += edges.len() as u32;
            found.first_edge.push(end);
        }
        Links { found: &found, heads }.tell(shapes, chains, |_| true);
    }

    #[test]
    fn links_trees_and_chains_are_told_apart() {
        let none = [Shape::None; 4];
        // Three in a row between two ends outside of blocks.
        let mut found = none;
        shapes(&[&[(0, 1)], &[(0, 2), (1, 0)], &[(1, 1)], &[(0, 3), (1, 3)]], &[9; 4], &mut found, &[]);
        assert_eq!(found, [Shape::ListNode, Shape::ListNode, Shape::ListNode, Shape::None]);
        // A parent with two children, and a block that refers to the parent only.
        let mut found = none;
        shapes(&[&[(2, 1), (3, 2)], &[(1, 0)], &[(1, 0)], &[(1, 0)]], &[0, 1, 1, 0], &mut found, &[]);
        assert_eq!(found, [Shape::TreeNode, Shape::TreeNode, Shape::TreeNode, Shape::None]);
        // A circular chain with a length that is too large.
        let mut found = none;
        let chain = Chain { first: 0, count: u64::MAX };
        shapes(&[&[(0, 1)], &[(0, 2)], &[(0, 0)], &[]], &[5; 4], &mut found, &[chain]);
        assert_eq!(found, [Shape::HashNode, Shape::HashNode, Shape::HashNode, Shape::None]);
    }
}
