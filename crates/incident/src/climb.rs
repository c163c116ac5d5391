//! Triggers before a kill: each climb of memory is told once.

use serde::{Deserialize, Serialize};

/// Thresholds at which a climb is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Share of the limit in hundredths.
    pub limit_percent: u64,
    /// Time within which the trend reaches the limit, in minutes; 0: the trend is not judged.
    pub within_minutes: u64,
    /// Rise of the resident set since the last step, in bytes; `None`: steps are not judged.
    pub rss_step_bytes: Option<u64>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { limit_percent: 85, within_minutes: 10, rss_step_bytes: None }
    }
}

/// Reason for which a climb is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "trigger")]
pub enum Trigger {
    /// Held memory has the share of the limit.
    Share {
        /// Share in hundredths.
        percent: u64,
    },
    /// Trend that reaches the limit soon.
    Trend {
        /// Minutes until the limit is reached.
        minutes: u64,
    },
    /// Resident set that has risen by a step.
    RssStep {
        /// Resident bytes.
        rss_bytes: u64,
    },
}

/// State of a group or process for the judgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct State {
    /// Bytes that the kernel cannot take back.
    pub held_bytes: u64,
    /// Hard limit; `None`: no limit.
    pub limit_bytes: Option<u64>,
    /// Change in bytes a minute over the last minutes; `None`: unknown.
    pub rate: Option<i64>,
    /// Resident bytes of all processes.
    pub rss_bytes: u64,
}

/// Least share of the limit, in hundredths, at which a trend counts: far below, it changes often.
const TREND_PERCENT_MIN: u64 = 50;
/// Fall below the share that was told, in hundredths of the limit, after which a new climb begins.
const FALL_PERCENT: u64 = 10;

/// Judge of one group's climbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Climb {
    /// Held bytes at the last trigger; `None`: no climb has been told.
    told_bytes: Option<u64>,
    /// Largest resident set that was told.
    step_bytes: Option<u64>,
}

impl Climb {
    /// Judges a state. A climb is told once; memory that has fallen by a tenth of the limit begins
    /// a new one.
    pub fn judge(&mut self, rules: &Rules, state: &State) -> Option<Trigger> {
        self.judge_limit(rules, state).or_else(|| self.judge_step(rules, state))
    }

    fn judge_limit(&mut self, rules: &Rules, state: &State) -> Option<Trigger> {
        let limit = state.limit_bytes.filter(|&limit| limit > 0)?;
        let fall = limit / 100 * FALL_PERCENT;
        if self.told_bytes.is_some_and(|told| state.held_bytes < told.saturating_sub(fall)) {
            self.told_bytes = None;
        }
        if self.told_bytes.is_some() {
            return None;
        }
        let percent = percent_of(state.held_bytes, limit);
        let trigger = if percent >= rules.limit_percent {
            Trigger::Share { percent }
        } else {
            let rate = state.rate.and_then(|rate| u64::try_from(rate).ok()).filter(|&rate| rate > 0)?;
            let minutes = limit.saturating_sub(state.held_bytes) / rate;
            if percent < TREND_PERCENT_MIN || minutes >= rules.within_minutes {
                return None;
            }
            Trigger::Trend { minutes }
        };
        self.told_bytes = Some(state.held_bytes);
        Some(trigger)
    }

    fn judge_step(&mut self, rules: &Rules, state: &State) -> Option<Trigger> {
        let step = rules.rss_step_bytes?;
        let told = *self.step_bytes.get_or_insert(state.rss_bytes);
        if state.rss_bytes < told.saturating_add(step) {
            return None;
        }
        self.step_bytes = Some(state.rss_bytes);
        Some(Trigger::RssStep { rss_bytes: state.rss_bytes })
    }
}

fn percent_of(part: u64, whole: u64) -> u64 {
    u64::try_from(u128::from(part) * 100 / u128::from(whole.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn state(held_mib: u64, rate_mib: i64) -> State {
        let rate = Some(rate_mib * MIB as i64);
        State { held_bytes: held_mib * MIB, limit_bytes: Some(100 * MIB), rate, rss_bytes: held_mib * MIB }
    }

    #[test]
    fn a_climb_is_told_once_and_a_new_one_again() {
        let (rules, mut climb) = (Rules::default(), Climb::default());
        let mut told = |held| climb.judge(&rules, &state(held, 0));
        assert_eq!(told(80), None);
        assert_eq!(told(86), Some(Trigger::Share { percent: 86 }));
        for held in [90, 84, 99, 80, 86] {
            assert_eq!(told(held), None, "{held}");
        }
        assert_eq!(told(70), None);
        assert_eq!(told(85), Some(Trigger::Share { percent: 85 }));
    }

    #[test]
    fn a_trend_counts_from_half_of_the_limit_on() {
        let (rules, mut climb) = (Rules::default(), Climb::default());
        assert_eq!(climb.judge(&rules, &state(40, 60)), None);
        assert_eq!(climb.judge(&rules, &state(60, 2)), None);
        assert_eq!(climb.judge(&rules, &state(60, -9)), None);
        assert_eq!(climb.judge(&rules, &state(60, 8)), Some(Trigger::Trend { minutes: 5 }));
        assert_eq!(climb.judge(&rules, &state(90, 8)), None);
    }

    #[test]
    fn constant_load_near_the_limit_is_no_climb() {
        let (rules, mut climb) = (Rules::default(), Climb::default());
        assert!(
            (0..1000)
                .all(|number| climb.judge(&rules, &state(78 + number % 5, 1 - number as i64 % 3)).is_none())
        );
    }

    #[test]
    fn steps_are_told_by_their_size_and_without_a_limit() {
        let rules = Rules { rss_step_bytes: Some(20 * MIB), ..Rules::default() };
        let mut climb = Climb::default();
        let mut told = |rss: u64| {
            let state = State { rss_bytes: rss * MIB, ..State::default() };
            climb.judge(&rules, &state).is_some()
        };
        assert_eq!(
            [10, 25, 30, 40, 51, 20, 60, 71].map(&mut told),
            [false, false, true, false, true, false, false, true]
        );
    }
}
