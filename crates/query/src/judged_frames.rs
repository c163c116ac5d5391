//! Rules of suppressions held against the stacks of one tree: what a line of a rule says of a frame
//! is found once, however many stacks the frame is in.

use crate::frames::FrameId;
use crate::suppressions::{FrameText, Part, Suppressions};

/// Answers that are kept at most; beyond, each is found anew.
const KEPT_MAX: usize = 64 << 20;

/// Rules, and what their lines have said of frames so far.
#[derive(Debug)]
pub(crate) struct JudgedFrames<'r> {
    rules: &'r Suppressions,
    /// By rule: the place of its first line among the answers of a frame.
    first: Vec<usize>,
    /// Answers of a frame.
    width: usize,
    /// By frame and line; empty: too many to keep.
    said: Vec<Option<bool>>,
}

impl<'r> JudgedFrames<'r> {
    pub(crate) fn new(rules: &'r Suppressions, frame_count: usize) -> Self {
        // The first answer is of `Part::ALLOCATES`.
        let mut width = 1;
        let first = rules
            .part_counts()
            .map(|count| {
                width += count;
                width - count
            })
            .collect();
        let said = match width.checked_mul(frame_count) {
            Some(answers) if answers <= KEPT_MAX => vec![None; answers],
            _ => Vec::new(),
        };
        Self { rules, first, width, said }
    }

    /// The number of the first rule that a stack matches; frames innermost first.
    pub(crate) fn rule_for<'t>(
        &mut self,
        frames: &[FrameId],
        text: impl Fn(FrameId) -> FrameText<'t>,
    ) -> Option<usize> {
        let Self { rules, first, width, said } = self;
        rules.first_rule(frames.len(), &mut |part, at| {
            let answer = match part {
                Part::ALLOCATES => 0,
                Part { rule, line } => first[rule] + line - 1,
            };
            match said.get_mut(frames[at].0 as usize * *width + answer) {
                Some(said) => *said.get_or_insert_with(|| rules.says(part, &text(frames[at]))),
                None => rules.says(part, &text(frames[at])),
            }
        })
    }
}
