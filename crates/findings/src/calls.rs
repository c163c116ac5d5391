//! Call tree with the amount of each part. If no single function has much, a part of the tree may.

use std::cmp::Reverse;
use std::collections::HashMap;

use heapr_query::Owner;
use heapr_query::engine::{FrameId, NamedStack, SymbolTree};
use heapr_table::SortRows as _;
use heapr_trace::StackIndex;

use crate::finding::OwnFrame;
use crate::own_name::shown_symbol;
use crate::recording::Recording;

/// Smallest share of a branch's amount that functions on the branch's path must have to be named
/// instead of it.
const SAME_SHARE: f64 = 0.8;
/// Largest number of functions named as shares of a part.
const SHARES_MAX: usize = 3;

/// Amounts by stack of the call tree, each with the amounts of all its callees. Lines of a function
/// are not distinguished.
pub(crate) struct Calls<'r, 'a> {
    recording: &'r Recording<'a>,
    amounts: Vec<i64>,
    /// By stack: index of its first child in `children`.
    begins: Vec<u32>,
    children: Vec<NamedStack>,
}

/// Stacks that call the same functions from the root, with their amount.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) stacks: Vec<NamedStack>,
    pub(crate) amount: i64,
}

impl<'r, 'a> Calls<'r, 'a> {
    /// Adds up the amounts. `tell` passes each stack's amount to the function that it is called
    /// with.
    pub(crate) fn new(
        recording: &'r Recording<'a>,
        tell: impl FnOnce(&mut dyn FnMut(StackIndex, i64)),
    ) -> Self {
        let tree: &SymbolTree = &recording.tree;
        let mut amounts = vec![0_i64; tree.count()];
        tell(&mut |stack, amount| {
            let named = recording.near(stack);
            if named != 0 {
                amounts[named as usize] = amounts[named as usize].saturating_add(amount);
            }
        });
        // Stacks without an amount, their own or a callee's, belong to no part.
        let mut is_part: Vec<bool> = amounts.iter().map(|&amount| amount != 0).collect();
        let mut begins = vec![0_u32; tree.count() + 1];
        // Callers have smaller numbers than callees.
        for stack in (1..tree.count()).rev() {
            if is_part[stack] {
                let caller = tree.parent(stack as NamedStack) as usize;
                amounts[caller] = amounts[caller].saturating_add(amounts[stack]);
                is_part[caller] = true;
                begins[caller] += 1;
            }
        }
        let mut count = 0;
        for begin in &mut begins {
            count += *begin;
            *begin = count;
        }
        // Filled backwards: the end of each caller's children moves down to their beginning.
        let mut children = vec![0; count as usize];
        for stack in (1..tree.count()).rev().filter(|&stack| is_part[stack]) {
            let place = &mut begins[tree.parent(stack as NamedStack) as usize];
            *place -= 1;
            children[*place as usize] = stack as NamedStack;
        }
        Self { recording, amounts, begins, children }
    }

    /// Part of the whole tree.
    pub(crate) fn root(&self) -> Part {
        Part { stacks: vec![0], amount: self.amounts[0] }
    }

    /// Parts that a part calls, one for each function, the largest first.
    fn below(&self, part: &Part) -> Vec<Part> {
        let tree: &SymbolTree = &self.recording.tree;
        let mut numbers: HashMap<FrameId, usize> = HashMap::new();
        let mut parts: Vec<(FrameId, Part)> = Vec::new();
        for &caller in &part.stacks {
            let of_it = self.begins[caller as usize] as usize..self.begins[caller as usize + 1] as usize;
            for &stack in &self.children[of_it] {
                let Some(frame) = tree.frame(stack) else { continue };
                let function = tree.frames.function(frame);
                let number = *numbers.entry(function).or_insert_with(|| {
                    parts.push((function, Part { stacks: Vec::new(), amount: 0 }));
                    parts.len() - 1
                });
                let part = &mut parts[number].1;
                part.stacks.push(stack);
                part.amount = part.amount.saturating_add(self.amounts[stack as usize]);
            }
        }
        // Equal amounts are sorted by name, so that the order is the same in every tree.
        parts.sort_rows_by_key(|(function, part)| (Reverse(part.amount), tree.frames.symbol(*function)));
        parts.into_iter().map(|(_, part)| part).collect()
    }

    /// Path from a part downwards that follows the largest callee, as long as its amount is at
    /// least `least`. The part itself is not included.
    pub(crate) fn way_down(&self, part: &Part, least: i64) -> Vec<Part> {
        let mut way: Vec<Part> = Vec::new();
        loop {
            let below = self.below(way.last().unwrap_or(part));
            match below.into_iter().next() {
                Some(next) if next.amount >= least && next.amount > 0 => way.push(next),
                _ => return way,
            }
        }
    }

    /// Owner of a part's function.
    pub(crate) fn owner(&self, part: &Part) -> Option<Owner> {
        let frames = &self.recording.tree.frames;
        let frame = self.recording.tree.frame(*part.stacks.first()?)?;
        Some(self.recording.own.owner(frames.module(frame), frames.symbol(frame), frames.file(frame)))
    }

    /// Function of a part, if it has a name and does not belong to the runtime.
    pub(crate) fn name(&self, part: &Part) -> Option<(OwnFrame, String)> {
        let frames = &self.recording.tree.frames;
        let frame = self.recording.tree.frame(*part.stacks.first()?)?;
        let (module, symbol) = (frames.module(frame), frames.symbol(frame)?);
        if self.recording.own.owner(module, Some(symbol), frames.file(frame)) == Owner::Runtime {
            return None;
        }
        let own_frame = OwnFrame {
            module: module.map(str::to_owned),
            symbol: Some(symbol.to_owned()),
            ..OwnFrame::default()
        };
        Some((own_frame, shown_symbol(module, symbol)))
    }

    /// Functions that have at least `least` of what a part calls, with their amounts. Each is the
    /// deepest function that has nearly all of its branch.
    pub(crate) fn shares(&self, part: &Part, least: i64) -> Vec<(String, i64)> {
        let mut shares: Vec<(String, i64)> = Vec::new();
        let is_enough = |branch: &Part| branch.amount >= least;
        for branch in self.below(part).into_iter().filter(is_enough) {
            let down = self.way_down(&branch, (branch.amount as f64 * SAME_SHARE) as i64);
            let named = down.iter().rev().chain([&branch]).find_map(|part| Some((self.name(part)?.1, part)));
            let Some((name, part)) = named else { continue };
            match shares.iter_mut().find(|(known, _)| *known == name) {
                Some((_, amount)) => *amount = amount.saturating_add(part.amount),
                None => shares.push((name, part.amount)),
            }
        }
        shares.sort_rows_by_key(|(_, amount)| Reverse(*amount));
        shares.truncate(SHARES_MAX);
        shares
    }
}
