//! Stacks that pass a filter's conditions on frames.

use heapr_trace::StackIndex;

use crate::culling::Culling;
use crate::filter::Filter;
use crate::frames::FrameId;
use crate::judged_frames::JudgedFrames;
use crate::stack_source::StackSource;
use crate::suppressions::FrameText;
use crate::symbol_tree::{NamedStack, SymbolTree};

/// Whether each stack of a file passes a filter's conditions on frames.
#[must_use]
pub fn chosen_stacks(stacks: &(impl StackSource + ?Sized), tree: &SymbolTree, filter: &Filter) -> Vec<bool> {
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
    let rules = &filter.left_out;
    let names_lines = rules.has_lines();
    // Decided by function names first. A rule that names source lines may match only some stacks of
    // the same names.
    let mut may_be_left_out = vec![false; if names_lines { tree.count() } else { 0 }];
    if !rules.is_empty() {
        let mut judged = JudgedFrames::new(rules, tree.frames.count());
        let is_passed = tree.stacks_with(&judged.passed_frames(|frame| tree.text(frame)));
        let mut frames: Vec<FrameId> = Vec::new();
        for (number, is_chosen) in chosen.iter_mut().enumerate().filter(|(_, is_chosen)| **is_chosen) {
            let of_stack = || tree.frames_of(number as NamedStack);
            let may_be = is_passed[number] || judged.may_begin(of_stack(), |frame| tree.text(frame));
            let is_left_out = may_be && {
                frames.clear();
                frames.extend(of_stack());
                judged.rule_for(&frames, |frame| tree.text(frame)).is_some()
            };
            match may_be_left_out.get_mut(number) {
                Some(may_be) => *may_be = is_left_out,
                None => *is_chosen = !is_left_out,
            }
        }
    }
    let is_chosen = |stack: u32| {
        let named = tree.named(StackIndex(stack));
        if !may_be_left_out.get(named as usize).is_some_and(|may_be| *may_be) {
            return chosen[named as usize];
        }
        let views = tree.views(stacks, StackIndex(stack), named);
        let texts: Vec<FrameText<'_>> = views.iter().map(FrameText::from).collect();
        rules.rule_for(&texts).is_none()
    };
    (0..stacks.node_count()).map(is_chosen).collect()
}
