//! Rules that trigger snapshots: at intervals, at a size, at growth, at a process's end.

use std::collections::HashSet;
use std::time::Duration;

use heapr_trace::{ProcessIndex, SnapshotTrigger};
use serde::{Deserialize, Serialize};

use crate::snapshots::graph_capture::{GraphContents, GraphRequest};
use crate::snapshots::native_snapshot::{SnapshotRequest, SnapshotScope};

/// Shortest interval: even a snapshot of ten million blocks is written in that time.
pub const SNAPSHOT_INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Percentage of a size below which a process must fall before passing the size counts again.
const REARM_PERCENT: u64 = 90;
/// Least live bytes for growth to count: below, everything grows.
const GROWTH_FLOOR_BYTES: u64 = 64 << 10;

/// Condition of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotWhen {
    /// Interval since the rule was added.
    Every {
        /// Interval, at least [`SNAPSHOT_INTERVAL_MIN`].
        interval: Duration,
    },
    /// Process's resident set passes a size; again after it was a tenth below the size.
    AtRss {
        /// Size in bytes.
        threshold_bytes: u64,
    },
    /// Live bytes exceed those at the rule's last snapshot by a percentage; the first snapshot is
    /// taken at 64 KiB.
    OnGrowth {
        /// Growth in percent, above 0.
        percent: u64,
    },
    /// Process ends, by itself or killed.
    AtExit,
}

/// Rule that triggers snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRule {
    /// Condition of the rule.
    pub when: SnapshotWhen,
    /// Processes that the rule covers; empty: all.
    pub pids: Vec<u32>,
    /// Contents of blocks in the object graphs, with one snapshot per process; `None`: no graphs.
    #[serde(default)]
    pub graph: Option<GraphContents>,
}

/// Figures of a process that rules check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Looked {
    pub(crate) process: ProcessIndex,
    pub(crate) pid: u32,
    pub(crate) rss_bytes: u64,
    pub(crate) live_bytes: u64,
}

/// Rule and its state.
#[derive(Debug)]
pub(crate) struct RuleState {
    rule: SnapshotRule,
    next_ns: u64,
    /// Processes above the size.
    above: HashSet<ProcessIndex>,
    /// Live bytes at the last snapshot.
    base_bytes: Option<u64>,
}

impl RuleState {
    pub(crate) fn new(rule: SnapshotRule, now_ns: u64) -> Self {
        let next_ns = match rule.when {
            SnapshotWhen::Every { interval } => now_ns.saturating_add(interval_ns(interval)),
            _ => 0,
        };
        Self { rule, next_ns, above: HashSet::new(), base_bytes: None }
    }

    pub(crate) fn rule(&self) -> &SnapshotRule {
        &self.rule
    }

    fn is_of(&self, pid: u32) -> bool {
        self.rule.pids.is_empty() || self.rule.pids.contains(&pid)
    }

    fn request(&self, trigger: SnapshotTrigger) -> SnapshotRequest {
        SnapshotRequest {
            name: String::new(),
            trigger,
            scope: SnapshotScope::of_pids(&self.rule.pids),
            graph: self.rule.graph.map(|contents| GraphRequest { contents, ..GraphRequest::default() }),
        }
    }

    /// Returns a request if the interval has passed. Intervals missed during a long snapshot are
    /// skipped.
    pub(crate) fn at_time(&mut self, now_ns: u64) -> Option<SnapshotRequest> {
        let SnapshotWhen::Every { interval } = self.rule.when else { return None };
        if now_ns < self.next_ns {
            return None;
        }
        let interval_ns = interval_ns(interval);
        let missed = (now_ns - self.next_ns) / interval_ns;
        self.next_ns = self.next_ns.saturating_add(interval_ns.saturating_mul(missed + 1));
        Some(self.request(SnapshotTrigger::Interval { interval_ms: interval_ns / 1_000_000 }))
    }

    /// Returns a request if sizes have been passed. `all`: live processes.
    pub(crate) fn at_sizes(&mut self, all: &[Looked]) -> Option<SnapshotRequest> {
        match self.rule.when {
            SnapshotWhen::AtRss { threshold_bytes } => {
                self.above.retain(|process| {
                    let lives = all.iter().find(|looked| looked.process == *process);
                    lives.is_some_and(|looked| {
                        u128::from(looked.rss_bytes) * 100
                            >= u128::from(threshold_bytes) * u128::from(REARM_PERCENT)
                    })
                });
                let mut has_passed = false;
                for looked in all.iter().filter(|looked| looked.rss_bytes >= threshold_bytes) {
                    if self.is_of(looked.pid) {
                        has_passed |= self.above.insert(looked.process);
                    }
                }
                has_passed.then(|| self.request(SnapshotTrigger::Rss { threshold_bytes }))
            }
            SnapshotWhen::OnGrowth { percent } => {
                let of_it = all.iter().filter(|looked| self.is_of(looked.pid));
                let live_bytes = of_it.map(|looked| looked.live_bytes).sum::<u64>();
                let base_bytes = u128::from(self.base_bytes.unwrap_or(0));
                let wanted = (base_bytes * (100 + u128::from(percent)) / 100)
                    .max(base_bytes + 1)
                    .max(u128::from(GROWTH_FLOOR_BYTES));
                if u128::from(live_bytes) < wanted {
                    return None;
                }
                self.base_bytes = Some(live_bytes);
                Some(self.request(SnapshotTrigger::Growth { percent }))
            }
            SnapshotWhen::Every { .. } | SnapshotWhen::AtExit => None,
        }
    }

    /// Whether the rule depends on sizes.
    pub(crate) fn looks_at_sizes(&self) -> bool {
        matches!(self.rule.when, SnapshotWhen::AtRss { .. } | SnapshotWhen::OnGrowth { .. })
    }

    /// Whether the end of this process triggers the rule.
    pub(crate) fn at_exit_of(&self, pid: u32) -> bool {
        self.rule.when == SnapshotWhen::AtExit && self.is_of(pid)
    }
}

fn interval_ns(interval: Duration) -> u64 {
    u64::try_from(interval.max(SNAPSHOT_INTERVAL_MIN).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(when: SnapshotWhen, pids: &[u32]) -> RuleState {
        RuleState::new(SnapshotRule { when, pids: pids.to_vec(), graph: None }, 0)
    }

    fn looked(pid: u32, rss_bytes: u64, live_bytes: u64) -> Looked {
        Looked { process: ProcessIndex(pid), pid, rss_bytes, live_bytes }
    }

    #[test]
    fn missed_intervals_are_not_made_up_for() {
        let mut rule = state(SnapshotWhen::Every { interval: Duration::from_secs(1) }, &[]);
        const S: u64 = 1_000_000_000;
        assert!(rule.at_time(S - 1).is_none());
        assert!(rule.at_time(S).is_some() && rule.at_time(S).is_none());
        assert!(rule.at_time(5 * S + 7).is_some() && rule.at_time(5 * S + 8).is_none());
        assert!(rule.at_time(6 * S - 1).is_none() && rule.at_time(6 * S).is_some(), "the grid stays");
    }

    #[test]
    fn a_size_counts_once_until_it_has_been_left_well_below() {
        let mut rule = state(SnapshotWhen::AtRss { threshold_bytes: 1000 }, &[1, 2]);
        let mut take = |one, two| rule.at_sizes(&[looked(1, one, 0), looked(2, two, 0), looked(3, 5000, 0)]);
        assert!(take(999, 0).is_none());
        assert_eq!(take(1000, 0).unwrap().trigger, SnapshotTrigger::Rss { threshold_bytes: 1000 });
        assert!(take(2000, 0).is_none());
        assert!(take(950, 0).is_none() && take(1000, 0).is_none(), "it has swung about the size");
        assert!(take(1000, 1000).is_some(), "another process");
        assert!(take(100, 1000).is_none() && take(1000, 1000).is_some());
    }

    #[test]
    fn growth_is_measured_from_the_last_snapshot_on() {
        let mut rule = state(SnapshotWhen::OnGrowth { percent: 10 }, &[]);
        let mut take = |live_bytes| rule.at_sizes(&[looked(1, 0, live_bytes)]).is_some();
        assert!(!take(GROWTH_FLOOR_BYTES - 1));
        assert!(take(2_000_000));
        assert!(!take(2_199_999) && take(2_200_000));
        assert!(!take(1_000_000) && !take(2_200_000) && take(2_420_000), "what swings does not grow");
        let scope = rule.at_sizes(&[looked(1, 0, u64::MAX)]).unwrap().scope;
        assert_eq!(scope, SnapshotScope::Live);
    }

    #[test]
    fn an_exit_counts_for_the_chosen_processes() {
        assert!(state(SnapshotWhen::AtExit, &[]).at_exit_of(5));
        assert!(!state(SnapshotWhen::AtExit, &[4]).at_exit_of(5));
        assert!(!state(SnapshotWhen::OnGrowth { percent: 1 }, &[]).at_exit_of(5));
    }
}
