//! From rows to the answers of actions.

use heapr_trace::{StackIndex, ThreadIndex};

use crate::aggregate::{self, NO_GROUP, Numbering};
use crate::call_tree::{CallTree, CallTreeBuilder};
use crate::cull_list::CullList;
use crate::culling::Culling;
use crate::error::{Error, Result};
use crate::frame_pattern::FramePattern;
use crate::frames::FrameId;
use crate::metrics::{Metrics, SortKey};
use crate::query::{Action, GroupBy};
use crate::report::{Answer, Group, GroupKey, Ranking};
use crate::row_table::Rows;
use crate::symbol_tree::{NamedStack, SymbolTree};

/// Rows with their stacks after culling: what all actions of a query share.
#[derive(Debug)]
pub(crate) struct Culled<'a> {
    rows: &'a Rows,
    tree: &'a SymbolTree,
    /// By row.
    stacks: Vec<NamedStack>,
}

impl<'a> Culled<'a> {
    pub(crate) fn new(rows: &'a Rows, tree: &'a SymbolTree, list: &CullList) -> Self {
        let mut culling = Culling::new(tree, list);
        let stacks = rows.totals.iter().map(|row| culling.cull(tree.named(row.stack))).collect();
        Self { rows, tree, stacks }
    }

    pub(crate) fn answer(&self, action: &Action, top: usize) -> Result<Answer> {
        Ok(match action {
            Action::Ranking { by, sort } => Answer::Ranking(self.ranking(*by, *sort, top)),
            Action::TopDown { sort } => Answer::Tree(self.top_down(*sort, top)),
            Action::Callers { of, sort } => Answer::Tree(self.callers(of, *sort, top)?),
        })
    }

    fn ranking(&self, by: GroupBy, sort: SortKey, top: usize) -> Ranking {
        let (group_of, keys) = match by {
            GroupBy::Stacks => {
                let mut numbering = Numbering::new(self.tree.len());
                let groups: Vec<u32> = self.stacks.iter().map(|&stack| numbering.number(stack)).collect();
                (groups, numbering.into_keys().into_iter().map(GroupKey::Stack).collect::<Vec<_>>())
            }
            GroupBy::Frames => self.by_frame(),
            GroupBy::Images => self.by_image(),
            GroupBy::Threads => self.by_thread(),
        };
        let ranking = aggregate::rank(self.rows, &group_of, keys.len(), sort, top);
        let group = |ranked: &aggregate::RankedGroup| {
            let mut key = keys[ranked.group as usize];
            if let GroupKey::Frame(Some((stack, _))) = &mut key {
                // The stack whose innermost frame it is, in the row that stands for the group.
                *stack = self.stack_of_row(ranked.representative);
            }
            Group { metrics: ranked.metrics, key, representative: ranked.representative }
        };
        Ranking {
            by,
            groups: ranking.groups.iter().map(group).collect(),
            group_count: ranking.group_count,
            rest: ranking.rest,
        }
    }

    /// The culled stack of the rows of a file's stack. (Rows are in order of their stacks.)
    fn stack_of_row(&self, stack: StackIndex) -> NamedStack {
        let at = self.rows.totals.partition_point(|row| row.stack < stack);
        self.stacks.get(at).copied().unwrap_or(0)
    }

    fn by_frame(&self) -> (Vec<u32>, Vec<GroupKey>) {
        // The frame's number + 1, 0 for no frame.
        let key_of = |stack: NamedStack| self.tree.frame(stack).map_or(0, |frame| frame.0 + 1);
        let mut numbering = Numbering::new(self.tree.frames.len() + 1);
        let groups = self.stacks.iter().map(|&stack| numbering.number(key_of(stack))).collect();
        let key = |key: u32| GroupKey::Frame(key.checked_sub(1).map(|frame| (0, FrameId(frame))));
        (groups, numbering.into_keys().into_iter().map(key).collect())
    }

    fn by_image(&self) -> (Vec<u32>, Vec<GroupKey>) {
        let mut keys: Vec<GroupKey> = Vec::new();
        let mut numbers = hashbrown::HashMap::new();
        let group_of = |&stack: &NamedStack| {
            let module = self.tree.frame(stack).and_then(|frame| self.tree.frames.key(frame).module);
            *numbers.entry(module).or_insert_with(|| {
                keys.push(GroupKey::Image(module));
                keys.len() as u32 - 1
            })
        };
        (self.stacks.iter().map(group_of).collect(), keys)
    }

    fn by_thread(&self) -> (Vec<u32>, Vec<GroupKey>) {
        let mut keys: Vec<GroupKey> = Vec::new();
        let mut numbers = hashbrown::HashMap::new();
        let mut group_of = |thread: ThreadIndex| {
            *numbers.entry(thread).or_insert_with(|| {
                keys.push(GroupKey::Thread(thread));
                keys.len() as u32 - 1
            })
        };
        let groups = if self.rows.threads.is_empty() {
            vec![NO_GROUP; self.rows.totals.len()]
        } else {
            self.rows.threads.iter().map(|&thread| group_of(thread)).collect()
        };
        (groups, keys)
    }

    fn top_down(&self, sort: SortKey, top: usize) -> CallTree {
        let mut builder = CallTreeBuilder::default();
        let mut path = Vec::new();
        for (row, &stack) in self.rows.totals.iter().zip(&self.stacks) {
            path.clear();
            path.extend(self.tree.frames_of(stack));
            path.reverse();
            builder.add(&path, row.stack, &Metrics::of(row));
        }
        builder.finish(sort, top)
    }

    fn callers(&self, of: &FramePattern, sort: SortKey, top: usize) -> Result<CallTree> {
        let is_callee = self.tree.matching_frames(std::slice::from_ref(of));
        let mut builder = CallTreeBuilder::default();
        let mut path = Vec::new();
        let mut is_found = false;
        for row in &self.rows.totals {
            path.clear();
            // Looked for in the whole stack: the callers of `malloc` may be asked for.
            let frames = self.tree.frames_of(self.tree.named(row.stack));
            path.extend(frames.skip_while(|frame| !is_callee[frame.0 as usize]));
            if !path.is_empty() {
                is_found = true;
                builder.add(&path, row.stack, &Metrics::of(row));
            }
        }
        if !is_found {
            return Err(Error::NoSuchFrame { pattern: of.as_str().to_owned() });
        }
        Ok(builder.finish(sort, top))
    }
}
