//! Lines whose live bytes grow steadily.

use heapr_trace::SnapshotTrigger;
use serde::{Deserialize, Serialize};

use super::change::Change;
use super::series::{Line, Series};
use crate::live_rows::LiveRow;
use crate::trend::Trend;

/// Certainty that a line leaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Hardly.
    Low,
    /// Probable.
    Medium,
    /// Nearly certain.
    High,
}

impl Confidence {
    /// Judges a trend. Two facts speak for a leak: an order that chance hardly makes, and live
    /// blocks of each interval. (Code that merely works more has only young blocks.) `None` if
    /// there is no sign of a leak.
    #[must_use]
    pub fn of(trend: &Trend, kept_share: Option<f64>) -> Option<Self> {
        if trend.growth <= 0 || trend.rising_share < 0.5 || trend.chance > 0.2 {
            return None;
        }
        let keeps_all = kept_share.is_some_and(|share| share >= 0.99);
        let keeps_none = kept_share.is_some_and(|share| share <= 0.34);
        let by_order = match trend.chance {
            ..=0.01 => Self::High,
            ..=0.05 => Self::Medium,
            _ => Self::Low,
        };
        Some(match by_order {
            _ if keeps_none => Self::Low,
            Self::Medium if keeps_all => Self::High,
            Self::Low if keeps_all && trend.rising_share >= 1.0 => Self::Medium,
            by_order => by_order,
        })
    }

    /// The confidence in a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A line that grows.
#[derive(Debug, Clone, Copy)]
pub struct Suspect<'a> {
    /// The line.
    pub line: &'a Line,
    /// Amounts in the last snapshot.
    pub last: &'a LiveRow,
    /// Growth over time.
    pub trend: Trend,
    /// Half of the 95 % interval of the growth; 0 if it was counted.
    pub growth_plus_minus: u64,
    /// Half of the 95 % interval of the rate.
    pub per_hour_plus_minus: u64,
    /// Certainty that the line leaks.
    pub confidence: Confidence,
    /// Share of the intervals between snapshots of which blocks are still live.
    pub kept_share: Option<f64>,
}

/// Order of suspects of the same confidence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspectOrder {
    /// Age of the oldest live block, then growth among similar ages.
    #[default]
    Oldest,
    /// Rate of growth.
    Rate,
    /// Total growth.
    Growth,
}

/// Half of the interval of a rate per hour, from that of the growth over `span_ns`.
///
/// Allocations between two snapshots are independent of others. So the growth from the first to the
/// last snapshot gives the most precise rate. A rate that also uses the moments in between is less
/// precise. The factor is 1.1 for the line of least squares (variance 6/5), and about as much for
/// the median of slopes.
fn rate_plus_minus(growth_plus_minus: u64, span_ns: u64) -> u64 {
    const LESS_SURE: f64 = 1.1;
    (growth_plus_minus as f64 / span_ns.max(1) as f64 * 3.6e12 * LESS_SURE) as u64
}

/// Whether a snapshot was taken at a process's end; such a snapshot is no point of a trend.
#[must_use]
pub fn is_at_end(trigger: SnapshotTrigger) -> bool {
    matches!(trigger, SnapshotTrigger::Exit | SnapshotTrigger::Killed { .. } | SnapshotTrigger::OutOfMemory)
}

/// Least ratio of two similar ages, in percent. Blocks that were allocated in the same moment are
/// ordered by size.
const SIMILAR_AGE_PERCENT: u128 = 90;

/// Groups similar ages; returns a function from an age to its group's index, oldest first.
fn eras(mut ages: Vec<u64>) -> impl Fn(u64) -> usize {
    ages.sort_unstable_by(|one, other| other.cmp(one));
    let is_next = |oldest: u64, age: u64| u128::from(age) * 100 < u128::from(oldest) * SIMILAR_AGE_PERCENT;
    let mut oldest: Vec<u64> = Vec::new();
    for age in ages {
        if oldest.last().is_none_or(|&oldest| is_next(oldest, age)) {
            oldest.push(age);
        }
    }
    move |age| oldest.partition_point(|&oldest| is_next(oldest, age))
}

impl Series {
    /// The lines that grow by at least `min_growth_bytes`, sorted.
    #[must_use]
    pub fn suspects(&self, min_growth_bytes: u64, order: SuspectOrder) -> Vec<Suspect<'_>> {
        let is_one_recording = self.is_one_recording();
        let mut suspects: Vec<Suspect<'_>> = self
            .lines
            .iter()
            .filter_map(|line| self.suspect(line, is_one_recording))
            .filter(|suspect| suspect.trend.growth >= i128::from(min_growth_bytes))
            .collect();
        let era = eras(suspects.iter().map(|suspect| suspect.last.oldest_age_ns).collect());
        suspects.sort_by(|one, other| {
            let by_order = match order {
                SuspectOrder::Oldest => era(one.last.oldest_age_ns)
                    .cmp(&era(other.last.oldest_age_ns))
                    .then(other.trend.growth.cmp(&one.trend.growth)),
                SuspectOrder::Rate => other.trend.per_hour.total_cmp(&one.trend.per_hour),
                SuspectOrder::Growth => other.trend.growth.cmp(&one.trend.growth),
            };
            let by_confidence = other.confidence.cmp(&one.confidence);
            by_confidence.then(by_order).then_with(|| one.line.frames.cmp(&other.line.frames))
        });
        suspects
    }

    fn suspect<'a>(&'a self, line: &'a Line, is_one_recording: bool) -> Option<Suspect<'a>> {
        let points: Vec<(u64, u64)> = self
            .taken
            .iter()
            .zip(&line.rows)
            .map(|(taken, row)| (taken.unix_ns, row.amount.bytes.value))
            .collect();
        let trend = Trend::of(&points)?;
        let last = line.rows.last()?;
        // Interval 0 is before the first snapshot, and the last interval after the last snapshot:
        // neither lies between two snapshots.
        let between = last.by_interval.get(1..self.taken.len()).filter(|_| is_one_recording);
        let kept_share = between.map(|between| {
            let kept = between.iter().filter(|amount| amount.count.value > 0).count();
            kept as f64 / between.len().max(1) as f64
        });
        let confidence = Confidence::of(&trend, kept_share)?;
        let growth_plus_minus = Change::of(line.rows.first()?, last, is_one_recording).bytes_plus_minus();
        let span_ns = points.last()?.0.saturating_sub(points.first()?.0);
        let per_hour_plus_minus = rate_plus_minus(growth_plus_minus, span_ns);
        Some(Suspect { line, last, trend, growth_plus_minus, per_hour_plus_minus, confidence, kept_share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_samples_lies_in_its_interval() {
        const SEEDS: u64 = 2000;
        const STEP_NS: u64 = 60_000_000_000;
        // A leak of `per_step` samples a step, each of which stands for a mebibyte.
        let (per_step, steps, sample_bytes) = (40_u64, 12_u64, 1_u64 << 20);
        let truth = (per_step * sample_bytes * 60) as f64;
        let mut inside = 0;
        for seed in 1..=SEEDS {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut draw = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state >> 40 & 1
            };
            let (mut samples, mut points) = (0_u64, Vec::new());
            for step in 0..=steps {
                points.push((step * STEP_NS, samples * sample_bytes));
                // Half of twice as many draws: half the variance of a Poisson process.
                samples += (0..per_step * 2).map(|_| draw()).sum::<u64>();
            }
            let grown = samples as f64 / 2.0;
            let half = (grown.sqrt() * heapr_table::quantity::DEVIATIONS * sample_bytes as f64) as u64;
            let trend = Trend::of(&points).unwrap();
            let off = (trend.per_hour - truth).abs();
            inside += u64::from(off <= rate_plus_minus(half, steps * STEP_NS) as f64);
        }
        let share = inside as f64 / SEEDS as f64;
        assert!((0.925..=0.985).contains(&share), "{share}");
    }

    #[test]
    fn similar_ages_stand_together_and_others_do_not() {
        let era = eras(vec![50, 100, 91, 0, 49, 95, 10]);
        assert_eq!([100, 95, 91, 50, 49, 10, 0].map(era), [0, 0, 0, 1, 1, 2, 3]);
    }

    fn trend(chance: f64, rising_share: f64, growth: i128) -> Trend {
        Trend { per_hour: 1.0, rising_share, chance, growth }
    }

    #[test]
    fn confidence_needs_an_order_that_chance_hardly_makes_or_blocks_that_stay() {
        let rising = |chance| trend(chance, 1.0, 10);
        assert_eq!(Confidence::of(&rising(1.0 / 6.0), None), Some(Confidence::Low));
        assert_eq!(Confidence::of(&rising(1.0 / 6.0), Some(1.0)), Some(Confidence::Medium));
        assert_eq!(Confidence::of(&rising(1.0 / 24.0), Some(1.0)), Some(Confidence::High));
        assert_eq!(Confidence::of(&rising(1.0 / 120.0), None), Some(Confidence::High));
        assert_eq!(Confidence::of(&rising(1.0 / 120.0), Some(0.25)), Some(Confidence::Low), "all is young");
    }

    #[test]
    fn what_does_not_grow_is_no_suspect() {
        assert_eq!(Confidence::of(&trend(0.001, 1.0, 0), None), None);
        assert_eq!(Confidence::of(&trend(0.5, 0.6, 10), Some(1.0)), None);
        assert_eq!(Confidence::of(&trend(0.01, 0.4, 10), Some(1.0)), None);
    }
}
