//! Suppression rules applied to the stacks of one tree. Each line of a rule is matched once per
//! frame, however many stacks the frame is in.

use crate::frames::FrameId;
use crate::suppressions::{FrameText, Part, Suppressions};

/// Largest number of cached answers; with more, each is computed anew.
const KEPT_MAX: usize = 64 << 20;

/// Rules with the cached answers of their lines.
#[derive(Debug)]
pub struct JudgedFrames<'r> {
    rules: &'r Suppressions,
    /// Index of each rule's first line among the answers of a frame.
    first: Vec<usize>,
    /// Number of answers per frame.
    width: usize,
    /// Answers by frame and line; empty if they are too many to cache.
    said: Vec<Option<bool>>,
}

impl<'r> JudgedFrames<'r> {
    /// Rules without cached answers, for a tree with this number of frames.
    #[must_use]
    pub fn new(rules: &'r Suppressions, frame_count: usize) -> Self {
        // The first answer belongs to `Part::ALLOCATES`.
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

    /// Number of the first rule that a stack matches; frames innermost first.
    pub fn rule_for<'t>(
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
