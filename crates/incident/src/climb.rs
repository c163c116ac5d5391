//! Triggers before a kill: each climb of memory is told once.

use serde::{Deserialize, Serialize};

use crate::own_limits::Limited;

/// Thresholds at which a climb is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    /// Share of the limit in hundredths.
    pub limit_percent: u64,
    /// Time within which the trend reaches the limit, in minutes; 0: the trend is not judged.
    pub within_minutes: u64,
    /// Rise of the resident set since the last step, in bytes; `None`: steps are not judged.
    pub rss_step_bytes: Option<u64>,
    /// Rise of swapped-out memory since the last step, in hundredths of the limit; 0: swap is not
    /// judged. A group without a limit has its own memory in place of it.
    pub swap_percent: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self { limit_percent: 85, within_minutes: 10, rss_step_bytes: None, swap_percent: 10 }
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
    /// Memory of the group that was swapped out.
    Swap {
        /// Swapped-out bytes.
        swapped_bytes: u64,
    },
    /// Soft limit of the group (`memory.high` of version 2), above which the kernel slows it down.
    SoftLimit {
        /// The limit in bytes.
        limit_bytes: u64,
        /// Times that it was met since the group was watched.
        times: u64,
    },
    /// Limit that the process has by itself.
    OwnLimit {
        /// Limited amount.
        of: OwnLimit,
        /// Share of the limit in hundredths.
        percent: u64,
        /// The limit in bytes.
        limit_bytes: u64,
    },
}

/// Amount of a process that has a limit of its own, at which an allocation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnLimit {
    /// Address space (`ulimit -v`).
    AddressSpace,
    /// V8's heap (`--max-old-space-size`).
    V8Heap,
}

impl OwnLimit {
    /// Name in sentences.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AddressSpace => "address space",
            Self::V8Heap => "V8's heap",
        }
    }
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
    /// Swapped-out bytes of the group.
    pub swapped_bytes: u64,
    /// Soft limit in bytes, and times that it was met since the group was watched; `None`: no soft
    /// limit.
    pub soft_limit: Option<(u64, u64)>,
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
    /// Swapped-out bytes from which on the next step counts.
    swap_bytes: Option<u64>,
    /// Held bytes at which the soft limit was told; `None`: no such climb has been told.
    #[serde(default)]
    slowed_bytes: Option<u64>,
    /// Times that the soft limit had been met at the last judgement.
    #[serde(default)]
    soft_times: u64,
}

impl Climb {
    /// Judges a state. A climb is told once; memory that has fallen by a tenth of the limit begins
    /// a new one.
    pub fn judge(&mut self, rules: &Rules, state: &State) -> Option<Trigger> {
        self.judge_limit(rules, state)
            .or_else(|| self.judge_step(rules, state))
            .or_else(|| self.judge_swap(rules, state))
            .or_else(|| self.judge_soft_limit(rules, state))
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

    /// Memory that was swapped out before the watch is no step.
    fn judge_swap(&mut self, rules: &Rules, state: &State) -> Option<Trigger> {
        const BYTES_MIN: u64 = 1 << 20;
        let swapped_bytes = state.swapped_bytes;
        let whole = state.limit_bytes.unwrap_or_else(|| state.held_bytes.saturating_add(swapped_bytes));
        let step = (whole / 100).saturating_mul(rules.swap_percent).max(BYTES_MIN);
        let from = self.swap_bytes.map_or(swapped_bytes, |from| from.min(swapped_bytes));
        let is_step = rules.swap_percent > 0 && swapped_bytes >= from.saturating_add(step);
        self.swap_bytes = Some(if is_step { swapped_bytes } else { from });
        is_step.then_some(Trigger::Swap { swapped_bytes })
    }

    /// Judges the soft limit. Files give way there at little cost, so what is held must fill it.
    fn judge_soft_limit(&mut self, rules: &Rules, state: &State) -> Option<Trigger> {
        let (limit_bytes, times) = state.soft_limit.filter(|&(limit_bytes, _)| limit_bytes > 0)?;
        let fall = limit_bytes / 100 * FALL_PERCENT;
        let is_over = |told: &u64| state.held_bytes < told.saturating_sub(fall);
        self.slowed_bytes = self.slowed_bytes.filter(|told| !is_over(told));
        let is_met = times > std::mem::replace(&mut self.soft_times, times);
        let is_full = percent_of(state.held_bytes, limit_bytes) >= rules.limit_percent;
        if !is_met || !is_full || self.slowed_bytes.is_some() {
            return None;
        }
        self.slowed_bytes = Some(state.held_bytes);
        Some(Trigger::SoftLimit { limit_bytes, times })
    }
}

/// Judge of a limit that a process has by itself: reaching it is told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnClimb {
    is_told: bool,
}

impl OwnClimb {
    /// Judges an amount. Returns its share of the limit in hundredths where a climb is to be told.
    pub fn judge(&mut self, rules: &Rules, amount: Limited) -> Option<u64> {
        let percent = percent_of(amount.used_bytes, amount.limit_bytes);
        self.is_told &= percent.saturating_add(FALL_PERCENT) >= rules.limit_percent;
        let is_near = amount.limit_bytes > 0 && percent >= rules.limit_percent && !self.is_told;
        self.is_told |= is_near;
        is_near.then_some(percent)
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
        State {
            held_bytes: held_mib * MIB,
            limit_bytes: Some(100 * MIB),
            rate,
            rss_bytes: held_mib * MIB,
            ..State::default()
        }
    }

    #[test]
    fn a_soft_limit_is_told_once_a_climb_where_it_is_met_by_what_is_held() {
        let (rules, mut climb) = (Rules::default(), Climb::default());
        let mut told = |held_mib: u64, times| {
            let soft_limit = Some((50 * MIB, times));
            let state = State { soft_limit, limit_bytes: None, ..state(held_mib, 0) };
            climb.judge(&rules, &state)
        };
        assert_eq!(told(20, 5), None, "files gave way");
        assert_eq!(told(48, 5), None, "it was not met again");
        assert_eq!(told(48, 9), Some(Trigger::SoftLimit { limit_bytes: 50 * MIB, times: 9 }));
        assert_eq!([told(49, 20), told(60, 30), told(40, 31)], [None; 3]);
        assert!(told(50, 40).is_some());
    }

    #[test]
    fn swap_is_told_by_steps_from_its_first_amount_on() {
        let (rules, mut climb) = (Rules::default(), Climb::default());
        let mut told =
            |mib: u64| climb.judge(&rules, &State { swapped_bytes: mib * MIB, ..state(40, 0) }).is_some();
        assert_eq!(
            [20, 25, 31, 35, 40, 42, 5, 14, 16].map(&mut told),
            [false, false, true, false, false, true, false, false, true]
        );
        let off = Rules { swap_percent: 0, ..rules };
        let mut climb = Climb::default();
        let mut told = |mib: u64| climb.judge(&off, &State { swapped_bytes: mib * MIB, ..state(40, 0) });
        assert!([0, 90].map(&mut told).iter().all(Option::is_none));
    }

    #[test]
    fn a_limit_of_its_own_is_told_once_a_climb() {
        let (rules, mut climb) = (Rules::default(), OwnClimb::default());
        let mut told = |used_bytes| climb.judge(&rules, Limited { used_bytes, limit_bytes: 100 });
        assert_eq!(
            [80, 85, 90, 76, 88, 74, 99].map(&mut told),
            [None, Some(85), None, None, None, None, Some(99)]
        );
        assert_eq!(climb.judge(&rules, Limited { used_bytes: 5, limit_bytes: 0 }), None);
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
