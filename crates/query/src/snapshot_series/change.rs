//! Changes of a line's blocks between the first and the last snapshot.

use super::series::{Line, Series};
use crate::live_rows::LiveRow;
use heapr_trace::BlockEstimate;

/// Change of a line's blocks between the first and the last snapshot.
#[derive(Debug, Clone, Copy)]
pub struct Change {
    /// Amount in the first snapshot.
    pub before: BlockEstimate,
    /// Amount in the last snapshot.
    pub after: BlockEstimate,
    /// Amount allocated after the first snapshot and still live, and amount of the first that is
    /// gone. `None` unless all snapshots are of one recording.
    pub turnover: Option<(BlockEstimate, BlockEstimate)>,
}

impl Change {
    pub(super) fn of(before: &LiveRow, after: &LiveRow, is_one_recording: bool) -> Self {
        let kept = after.by_interval.first().copied().unwrap_or_default();
        let turnover = is_one_recording.then(|| (after.amount.without(kept), before.amount.without(kept)));
        Self { before: before.amount, after: after.amount, turnover }
    }

    /// Growth in bytes.
    #[must_use]
    pub fn bytes(&self) -> i128 {
        i128::from(self.after.bytes.value) - i128::from(self.before.bytes.value)
    }

    /// Growth in blocks.
    #[must_use]
    pub fn blocks(&self) -> i128 {
        i128::from(self.after.count.value) - i128::from(self.before.count.value)
    }

    /// Sum of the new and the gone blocks; of two recordings the sum of both snapshots.
    fn changed(&self) -> BlockEstimate {
        let (mut changed, gone) = self.turnover.unwrap_or((self.after, self.before));
        changed += gone;
        changed
    }

    /// Half of the 95 % interval of [`Self::bytes`]; 0 if counted.
    #[must_use]
    pub fn bytes_plus_minus(&self) -> u64 {
        self.changed().bytes_plus_minus()
    }

    /// Half of the 95 % interval of [`Self::blocks`]; 0 if counted.
    #[must_use]
    pub fn blocks_plus_minus(&self) -> u64 {
        self.changed().count_plus_minus()
    }

    /// `new`, `gone`, `grown`, `shrunk` or `same`.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match (self.before.count.value, self.after.count.value) {
            (0, _) => "new",
            (_, 0) => "gone",
            _ if self.bytes() > 0 => "grown",
            _ if self.bytes() < 0 => "shrunk",
            _ => "same",
        }
    }

    fn is_none(&self) -> bool {
        self.before == self.after
            && self.turnover.is_none_or(|(new, gone)| new.count.value + gone.count.value == 0)
    }
}

/// A line with its change.
#[derive(Debug, Clone, Copy)]
pub struct LineChange<'a> {
    /// The line.
    pub line: &'a Line,
    /// Change of the line.
    pub change: Change,
}

/// Order of changes; the first one listed has most of the quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeOrder {
    /// Change in bytes, up or down.
    Change,
    /// Growth in bytes.
    Growth,
    /// Bytes allocated since the first snapshot.
    New,
    /// Bytes freed since the first snapshot.
    Gone,
}

impl Series {
    /// Whether all snapshots are of one recording.
    #[must_use]
    pub fn is_one_recording(&self) -> bool {
        self.taken.windows(2).all(|pair| pair[0].is_of_recording(&pair[1]))
    }

    /// The change over all lines; `None` without snapshots.
    #[must_use]
    pub fn whole_change(&self) -> Option<Change> {
        Some(Change::of(self.wholes.first()?, self.wholes.last()?, self.is_one_recording()))
    }

    /// The lines that differ between the first and the last snapshot, in amount or in blocks,
    /// sorted.
    #[must_use]
    pub fn changes(&self, order: ChangeOrder) -> Vec<LineChange<'_>> {
        let is_one_recording = self.is_one_recording();
        let change = |line: &Line| {
            Some(Change::of(line.rows.first()?, line.rows.last()?, is_one_recording))
                .filter(|change| !change.is_none())
        };
        let mut changes: Vec<LineChange<'_>> =
            self.lines.iter().filter_map(|line| Some(LineChange { line, change: change(line)? })).collect();
        let key = |change: &Change| match order {
            ChangeOrder::Change => {
                i128::from(u64::try_from(change.bytes().unsigned_abs()).unwrap_or(u64::MAX))
            }
            ChangeOrder::Growth => change.bytes(),
            ChangeOrder::New => change.turnover.map_or(0, |(new, _)| i128::from(new.bytes.value)),
            ChangeOrder::Gone => change.turnover.map_or(0, |(_, gone)| i128::from(gone.bytes.value)),
        };
        changes.sort_by(|one, other| {
            let keys = key(&other.change).cmp(&key(&one.change));
            keys.then_with(|| one.line.frames.cmp(&other.line.frames))
        });
        changes
    }
}
