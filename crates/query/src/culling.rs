//! Culling of stacks, with each frame decided at most once. Only the few frames that end stacks are
//! compared with the list.

use crate::cull_list::CullList;
use crate::frames::FrameId;
use crate::symbol_tree::{NamedStack, SymbolTree};

#[derive(Debug)]
/// Culls the stacks of a tree, and caches the decision for each frame.
pub struct Culling<'a> {
    tree: &'a SymbolTree,
    list: &'a CullList,
    /// Decision for each frame; `None` until needed.
    decided: Vec<Option<bool>>,
}

impl<'a> Culling<'a> {
    /// A culling without any decision yet.
    pub fn new(tree: &'a SymbolTree, list: &'a CullList) -> Self {
        Self { tree, list, decided: vec![None; tree.frames.count()] }
    }

    /// The stack without the longest run of innermost frames that all match. At least the outermost
    /// frame remains.
    pub(crate) fn cull(&mut self, stack: NamedStack) -> NamedStack {
        if self.list.is_empty() {
            return stack;
        }
        let mut stack = stack;
        while let Some(frame) = self.tree.frame(stack) {
            let parent = self.tree.parent(stack);
            if parent == 0 || !self.is_culled(frame) {
                break;
            }
            stack = parent;
        }
        stack
    }

    /// The culled stack of each stack.
    pub fn all(&mut self) -> Vec<NamedStack> {
        let mut left: Vec<NamedStack> = (0..self.tree.count() as NamedStack).collect();
        if self.list.is_empty() {
            return left;
        }
        // Callers have smaller numbers than their callees.
        for stack in 1..left.len() {
            let parent = self.tree.parent(stack as NamedStack);
            let frame = self.tree.frame(stack as NamedStack);
            if parent != 0 && frame.is_some_and(|frame| self.is_culled(frame)) {
                left[stack] = left[parent as usize];
            }
        }
        left
    }

    fn is_culled(&mut self, frame: FrameId) -> bool {
        let frames = &self.tree.frames;
        *self.decided[frame.0 as usize]
            .get_or_insert_with(|| self.list.matches(frames.module(frame), frames.symbol(frame)))
    }
}
