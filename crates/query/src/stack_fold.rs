//! Fold of stacks into numbers, frame by frame; shared callers are folded once.

use heapr_trace::StackIndex;

use crate::frames::FrameView;
use crate::report::{Group, GroupKey, Report};
use crate::symbol_tree::NamedStack;

/// Marks a stack that is not folded yet.
const NOT_YET: u32 = u32::MAX;

/// Folds stacks. The result of a stack is a number; that of the empty stack is 0.
#[derive(Debug)]
pub struct StackFold<'r, 't> {
    report: &'r Report<'t>,
    /// Result of each stack of the file.
    made: Vec<u32>,
    /// Number of frames of each named stack.
    depths: Vec<u32>,
}

impl<'r, 't> StackFold<'r, 't> {
    /// A fold without results yet.
    #[must_use]
    pub fn new(report: &'r Report<'t>) -> Self {
        let mut depths = vec![0_u32; report.tree.count()];
        for stack in 1..depths.len() {
            depths[stack] = depths[report.tree.parent(stack as NamedStack) as usize] + 1;
        }
        Self { report, made: vec![NOT_YET; report.stacks.node_count() as usize], depths }
    }

    /// Folds the frames of a group, the outermost first, and returns the result. `add` computes the
    /// result of a frame from that of its caller. Also returns how many innermost frames culling
    /// removes. The frames are those of [`Report::frames`].
    pub fn of_group(&mut self, group: &Group, add: &mut dyn FnMut(u32, &FrameView<'_>) -> u32) -> (u32, u32) {
        let GroupKey::Stack(culled) = group.key else {
            return (self.report.frames(group).iter().rev().fold(0, add), 0);
        };
        let named = self.report.tree.named(group.representative);
        let depth = |stack: NamedStack| self.depths.get(stack as usize).copied().unwrap_or(0);
        let away = depth(named).saturating_sub(depth(culled));
        (self.of_stack(group.representative, add), away)
    }

    fn of_stack(&mut self, stack: StackIndex, add: &mut dyn FnMut(u32, &FrameView<'_>) -> u32) -> u32 {
        let (tree, stacks) = (&self.report.tree, self.report.stacks);
        let mut open = Vec::new();
        let (mut next, mut made) = (stack, 0);
        while next != StackIndex::EMPTY {
            match self.made.get(next.0 as usize) {
                Some(&NOT_YET) => open.push(next),
                known => {
                    made = known.copied().unwrap_or(0);
                    break;
                }
            }
            next = stacks.parent(next);
        }
        while let Some(stack) = open.pop() {
            tree.for_each_own_view(stacks, stack, &mut |view| made = add(made, view));
            self.made[stack.0 as usize] = made;
        }
        made
    }
}
