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
    /// Whether a rule may begin with a frame, by frame.
    begins: Vec<Option<bool>>,
    /// Whether a frame only allocates, by frame.
    allocates: Vec<Option<bool>>,
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
        let unknown = vec![None; frame_count];
        Self { rules, first, width, said, begins: unknown.clone(), allocates: unknown }
    }

    /// Frames with which a stack may match a rule that begins with any frames.
    pub(crate) fn passed_frames<'t>(&self, text: impl Fn(FrameId) -> FrameText<'t>) -> Vec<bool> {
        (0..self.begins.len() as u32).map(|frame| self.rules.may_pass(&text(FrameId(frame)))).collect()
    }

    /// Whether a rule may match a stack without any of [`Self::passed_frames`]; frames innermost
    /// first. The first few frames tell of nearly all stacks that none does.
    pub(crate) fn may_begin<'t>(
        &mut self,
        frames: impl Iterator<Item = FrameId>,
        text: impl Fn(FrameId) -> FrameText<'t>,
    ) -> bool {
        let Self { rules, begins, allocates, .. } = self;
        let known =
            |said: &mut Vec<Option<bool>>, frame: FrameId, judge: &dyn Fn(&FrameText<'t>) -> bool| match said
                .get_mut(frame.0 as usize)
            {
                Some(said) => *said.get_or_insert_with(|| judge(&text(frame))),
                None => judge(&text(frame)),
            };
        for (place, frame) in frames.enumerate() {
            let is_allocating = known(allocates, frame, &|text| rules.says(Part::ALLOCATES, text));
            let is_first = place == 0 || !is_allocating;
            if is_first && known(begins, frame, &|text| rules.may_begin_with(text)) {
                return true;
            }
            if !is_allocating {
                return false;
            }
        }
        // Nothing is left for a rule's first line, which may be one that matches no frame.
        true
    }

    /// Number of the first rule that a stack matches; frames innermost first.
    pub fn rule_for<'t>(
        &mut self,
        frames: &[FrameId],
        text: impl Fn(FrameId) -> FrameText<'t>,
    ) -> Option<usize> {
        let Self { rules, first, width, said, .. } = self;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_rule_matches_is_not_passed_over() {
        let names = ["malloc", "calloc", "keep", "serve", "main"];
        let text = |frame: FrameId| FrameText {
            symbol: names.get(frame.0 as usize).copied(),
            ..FrameText::default()
        };
        let blocks = [
            "fun:keep",
            "fun:malloc\nfun:keep",
            "fun:malloc",
            "fun:malloc\n...\nfun:main",
            "...\nfun:serve",
            "...\n...\nfun:serve\n...",
            "fun:calloc\n...",
        ];
        let files = blocks.map(|lines| format!("{{\na\nMemcheck:Leak\n{lines}\n}}"));
        let may_match = |judged: &mut JudgedFrames<'_>, frames: &[FrameId]| {
            let passed = judged.passed_frames(text);
            frames.iter().any(|frame| passed[frame.0 as usize])
                || judged.may_begin(frames.iter().copied(), text)
        };
        let mut matched = 0;
        for file in files.iter().map(String::as_str).chain(["leak:main"]) {
            let rules = Suppressions::parse(file).unwrap();
            // All stacks of up to four frames.
            for number in 0..6_u32.pow(4) {
                let digits = (0..4).map(|place| number / 6_u32.pow(place) % 6);
                let frames: Vec<FrameId> = digits.take_while(|&digit| digit < 5).map(FrameId).collect();
                let mut judged = JudgedFrames::new(&rules, names.len());
                let is_matched = judged.rule_for(&frames, text).is_some();
                matched += u32::from(is_matched);
                assert!(!is_matched || may_match(&mut judged, &frames), "{file}: {frames:?}");
            }
        }
        assert!(matched > 100);
        let rules = Suppressions::parse("{\na\nMemcheck:Leak\nfun:malloc\nfun:keep\n}").unwrap();
        let mut judged = JudgedFrames::new(&rules, names.len());
        assert!(!may_match(&mut judged, &[FrameId(3), FrameId(2)]));
        assert!(!may_match(&mut judged, &[FrameId(1), FrameId(3), FrameId(2)]));
        let known = Suppressions::known();
        assert!(!may_match(&mut JudgedFrames::new(&known, names.len()), &[FrameId(2), FrameId(4)]));
    }
}
