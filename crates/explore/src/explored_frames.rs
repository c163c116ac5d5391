//! Frames of an explorer's groups and stacks, by number and by name.

use heapr_query::engine::{FrameId, GroupKey, frames_of_group};
use heapr_query::{FramePattern, FrameView, Group};
use heapr_trace::StackIndex;

use crate::explorer::Explorer;
use crate::frame_number::FrameNumber;

impl Explorer {
    /// The frames of a group, in the form of [`heapr_query::Report::frames`].
    #[must_use]
    pub fn frames(&self, group: &Group) -> Vec<FrameView<'_>> {
        frames_of_group(self.tree(), self.trace().as_ref(), group)
    }

    /// Key of a group's stack, for [`Explorer::stack_frames`].
    #[must_use]
    pub fn stack_key(&self, group: &Group) -> Option<(u32, u32)> {
        match group.key {
            GroupKey::Stack(stack) => Some((group.representative.0, stack)),
            GroupKey::Frame(Some((stack, _))) => Some((group.representative.0, stack)),
            _ => None,
        }
    }

    /// The frame of a group in a ranking of frames.
    #[must_use]
    pub fn frame_of(&self, group: &Group) -> Option<FrameNumber> {
        match group.key {
            GroupKey::Frame(Some((_, frame))) => Some(FrameNumber(frame.0)),
            _ => None,
        }
    }

    /// All frames of a stack, innermost first, with their numbers; and the number of frames that
    /// culling removed. `None` unless the key is one of [`Explorer::stack_key`].
    #[must_use]
    pub fn stack_frames(&self, key: (u32, u32)) -> Option<(Vec<(FrameNumber, FrameView<'_>)>, usize)> {
        let tree = self.tree();
        let stack = StackIndex(key.0);
        if key.0 as usize >= self.trace().stacks().len() {
            return None;
        }
        let whole = tree.named(stack);
        let mut removed = 0;
        let mut at = whole;
        while at != key.1 {
            if at == 0 {
                return None;
            }
            at = tree.parent(at);
            removed += 1;
        }
        let numbers: Vec<FrameNumber> = tree.frames_of(whole).map(|frame| FrameNumber(frame.0)).collect();
        let views = tree.views(self.trace().as_ref(), stack, whole);
        Some((numbers.into_iter().zip(views).collect(), removed))
    }

    /// The innermost frame of a stack after culling (the second number of [`Explorer::stack_key`]).
    #[must_use]
    pub fn innermost_frame(&self, key: (u32, u32)) -> Option<FrameNumber> {
        let tree = self.tree();
        ((key.1 as usize) < tree.count())
            .then(|| tree.frame(key.1))
            .flatten()
            .map(|frame| FrameNumber(frame.0))
    }

    /// A frame by number, without a source line.
    #[must_use]
    pub fn frame(&self, frame: FrameNumber) -> Option<FrameView<'_>> {
        let frames = &self.tree().frames;
        ((frame.0 as usize) < frames.count()).then(|| frames.view(FrameId(frame.0)))
    }

    /// Returns for each frame if its module or symbol contains `text`, ignoring case.
    #[must_use]
    pub fn frames_with_text(&self, text: &str) -> Vec<bool> {
        let text = text.to_lowercase();
        let frames = &self.tree().frames;
        let has = |name: Option<&str>| name.is_some_and(|name| name.to_lowercase().contains(&text));
        (0..frames.count() as u32)
            .map(|frame| has(frames.symbol(FrameId(frame))) || has(frames.module(FrameId(frame))))
            .collect()
    }

    /// The first frame that a pattern matches.
    #[must_use]
    pub fn frame_matching(&self, pattern: &FramePattern) -> Option<FrameNumber> {
        let frames = &self.tree().frames;
        let matches =
            |&frame: &u32| pattern.matches(frames.module(FrameId(frame)), frames.symbol(FrameId(frame)));
        (0..frames.count() as u32).find(matches).map(FrameNumber)
    }

    /// Retains the groups of a ranking of stacks, frames or images that have a frame set in
    /// `is_set` (by frame number).
    pub fn retain_with_frames(&self, groups: &mut Vec<Group>, is_set: &[bool]) {
        let tree = self.tree();
        let has: Vec<bool> = tree.stacks_with(is_set);
        groups.retain(|group| match group.key {
            GroupKey::Stack(stack) => has.get(stack as usize).copied().unwrap_or(false),
            GroupKey::Frame(Some((_, frame))) => is_set.get(frame.0 as usize).copied().unwrap_or(false),
            _ => false,
        });
    }
}
