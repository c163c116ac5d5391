//! Turns rows into the answers of actions.

use heapr_trace::{StackIndex, ThreadIndex};

use crate::aggregate::{self, NO_GROUP, Numbering};
use crate::call_tree::{CallTree, CallTreeBuilder};
use crate::culled_rows::{Culled, LEFT_OUT};
use crate::error::{Error, Result};
use crate::frame_pattern::FramePattern;
use crate::frames::FrameId;
use crate::functions::{self, Functions};
use crate::metrics::Metric;
use crate::query::{Action, GroupBy};
use crate::report::{Answer, Group, GroupKey, Ranking};
use crate::symbol_tree::NamedStack;

impl Culled<'_, '_> {
    /// Functions, or their lines if `by_line`, each with all that it calls, ranked by an inclusive
    /// amount.
    pub fn functions(&self, by_line: bool, sort: Metric, top: usize) -> Result<Functions> {
        functions::functions(self, by_line, sort, top)
    }

    pub(crate) fn answer(&self, action: &Action, top: usize) -> Result<Answer> {
        Ok(match action {
            Action::Ranking { by, sort } => Answer::Ranking(self.ranking(*by, *sort, top)?),
            Action::Functions { sort, by_line } => {
                Answer::Functions(functions::functions(self, *by_line, *sort, top)?)
            }
            Action::TopDown { sort } => Answer::Tree(self.top_down(*sort, top)?),
            Action::Callers { of, sort } => Answer::Tree(self.callers(of, *sort, top)?),
        })
    }

    /// Groups the rows and ranks the groups.
    pub fn ranking(&self, by: GroupBy, sort: Metric, top: usize) -> Result<Ranking> {
        let (group_of, keys) = match by {
            GroupBy::Stacks => {
                let mut numbering = Numbering::new(self.tree.count());
                let groups = self.group_rows(|stack| numbering.number(stack));
                (groups, numbering.into_keys().into_iter().map(GroupKey::Stack).collect::<Vec<_>>())
            }
            GroupBy::Frames => self.by_frame(|frame| self.tree.frames.function(frame)),
            GroupBy::Lines => self.by_frame(|frame| frame),
            GroupBy::Images => self.by_image(),
            GroupBy::Threads => self.by_thread(),
        };
        let ranking = aggregate::rank(self.rows, &group_of, keys.len(), sort, top)?;
        let mut groups: Vec<Group> = ranking
            .groups
            .iter()
            .map(|ranked| Group {
                amounts: ranked.amounts,
                key: keys[ranked.group as usize],
                representative: ranked.representative,
            })
            .collect();
        if matches!(by, GroupBy::Frames | GroupBy::Lines) {
            self.place_frames(&mut groups)?;
        }
        Ok(Ranking { by, groups, group_count: ranking.group_count, rest: ranking.rest })
    }

    /// Sets the stack of each group of a frame to the culled stack of the group's representative
    /// row. The frame is innermost in that stack.
    fn place_frames(&self, groups: &mut [Group]) -> Result<()> {
        let mut wanted: hashbrown::HashMap<StackIndex, NamedStack> =
            groups.iter().map(|group| (group.representative, 0)).collect();
        self.for_each(|row, stack| {
            if let Some(place) = wanted.get_mut(&row.stack) {
                *place = stack;
            }
        })?;
        for group in groups {
            if let GroupKey::Frame(Some((stack, _))) = &mut group.key {
                *stack = wanted.get(&group.representative).copied().unwrap_or(0);
            }
        }
        Ok(())
    }

    fn by_frame(&self, of: impl Fn(FrameId) -> FrameId) -> (Vec<u32>, Vec<GroupKey>) {
        // Key of a frame: its number + 1; 0 for no frame.
        let key_of = |stack: NamedStack| self.tree.frame(stack).map_or(0, |frame| of(frame).0 + 1);
        let mut numbering = Numbering::new(self.tree.frames.count() + 1);
        let groups = self.group_rows(|stack| numbering.number(key_of(stack)));
        let key = |key: u32| GroupKey::Frame(key.checked_sub(1).map(|frame| (0, FrameId(frame))));
        (groups, numbering.into_keys().into_iter().map(key).collect())
    }

    fn by_image(&self) -> (Vec<u32>, Vec<GroupKey>) {
        let mut keys: Vec<GroupKey> = Vec::new();
        let mut numbers = hashbrown::HashMap::new();
        let group_of = |stack: NamedStack| {
            let module = self.tree.frame(stack).and_then(|frame| self.tree.frames.module_name(frame));
            *numbers.entry(module).or_insert_with(|| {
                keys.push(GroupKey::Image(module));
                keys.len() as u32 - 1
            })
        };
        (self.group_rows(group_of), keys)
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
        let mut threads = self.rows.threads().iter();
        let groups = self.stacks.iter().map(|&stack| match threads.next() {
            Some(&thread) if stack != LEFT_OUT => group_of(thread),
            _ => NO_GROUP,
        });
        (groups.collect(), keys)
    }

    fn top_down(&self, sort: Metric, top: usize) -> Result<CallTree> {
        let mut builder = CallTreeBuilder::default();
        let mut path = Vec::new();
        self.for_each(|row, stack| {
            path.clear();
            path.extend(self.tree.frames_of(stack));
            path.reverse();
            builder.add(&path, row.stack, &row.amounts);
        })?;
        Ok(builder.finish(sort, top))
    }

    fn callers(&self, of: &FramePattern, sort: Metric, top: usize) -> Result<CallTree> {
        let is_callee = self.tree.matching_frames(std::slice::from_ref(of));
        let mut builder = CallTreeBuilder::default();
        let mut path = Vec::new();
        let mut is_found = false;
        self.for_each(|row, _| {
            path.clear();
            // The search covers the whole stack, because the pattern may match a culled frame such
            // as `malloc`.
            let frames = self.tree.frames_of(self.tree.named(row.stack));
            path.extend(frames.skip_while(|frame| !is_callee[frame.0 as usize]));
            if !path.is_empty() {
                is_found = true;
                builder.add(&path, row.stack, &row.amounts);
            }
        })?;
        if !is_found {
            return Err(Error::NoSuchFrame { pattern: of.as_str().to_owned() });
        }
        Ok(builder.finish(sort, top))
    }
}
