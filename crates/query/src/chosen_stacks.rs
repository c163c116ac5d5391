//! Which stacks a filter lets pass for their frames.

use crate::culling::Culling;
use crate::filter::Filter;
use crate::frames::FrameId;
use crate::judged_frames::JudgedFrames;
use crate::symbol_tree::{NamedStack, SymbolTree};

/// For each stack of a tree, whether a filter lets it pass for its frames.
#[must_use]
pub fn chosen_stacks(tree: &SymbolTree, filter: &Filter) -> Vec<bool> {
    let mut chosen = match filter.required_frames.as_slice() {
        [] => vec![true; tree.count()],
        required => tree.stacks_with(&tree.matching_frames(required)),
    };
    if let Some(innermost) = &filter.innermost {
        let matching = tree.matching_frames(&innermost.patterns);
        let left = Culling::new(tree, &innermost.cull).all();
        for (is_chosen, &left) in chosen.iter_mut().zip(&left) {
            *is_chosen &= tree.frame(left).is_some_and(|frame| matching[frame.0 as usize]);
        }
    }
    if !filter.left_out.is_empty() {
        let mut judged = JudgedFrames::new(&filter.left_out, tree.frames.count());
        let mut frames: Vec<FrameId> = Vec::new();
        for (number, is_chosen) in chosen.iter_mut().enumerate().filter(|(_, is_chosen)| **is_chosen) {
            frames.clear();
            frames.extend(tree.frames_of(number as NamedStack));
            *is_chosen = judged.rule_for(&frames, |frame| tree.text(frame)).is_none();
        }
    }
    chosen
}
