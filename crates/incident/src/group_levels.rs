//! A control group and the groups above it: the limit that decides, and the events at each level.

use heapr_proc::{GroupFolder, GroupLimit};
use serde::{Deserialize, Serialize};

use crate::group_events::{GroupEvents, is_killed_whole};

/// A group and the groups above it, with the counters of the first reading.
#[derive(Debug, Clone)]
pub struct Levels {
    levels: Vec<(GroupFolder, GroupEvents)>,
}

/// Events of one level since the first reading.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct More {
    /// Path of the group, from `/` on.
    pub path: String,
    /// Hard limit in bytes; `None`: the level has no limit.
    pub limit_bytes: Option<u64>,
    /// Bytes that count against the limit.
    pub used_bytes: Option<u64>,
    /// Events since the first reading.
    pub events: GroupEvents,
    /// Whether the kernel kills all processes of the group together.
    pub is_killed_whole: bool,
}

impl Levels {
    /// Reads the counters of a group and of the groups above it.
    #[must_use]
    pub fn of(group: &GroupFolder) -> Self {
        let levels = group.with_ancestors().into_iter().map(|level| {
            let events = GroupEvents::of(&level);
            (level, events)
        });
        Self { levels: levels.collect() }
    }

    /// Replaces the counters of the first reading, by path: those that an earlier watcher has read.
    pub fn start_from(&mut self, earlier: &[(String, GroupEvents)]) {
        for (level, events) in &mut self.levels {
            if let Some((_, before)) = earlier.iter().find(|(path, _)| *path == level.path()) {
                *events = *before;
            }
        }
    }

    /// Makes the present counters those of the first reading.
    pub fn restart(&mut self) {
        for (level, events) in &mut self.levels {
            // A group that is gone keeps its last counters.
            if level.exists() {
                *events = GroupEvents::of(level);
            }
        }
    }

    /// Counters of the first reading, by path.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, GroupEvents)> {
        self.levels.iter().map(|(level, events)| (level.path(), *events)).collect()
    }

    /// Groups, the inner one first.
    pub fn groups(&self) -> impl Iterator<Item = &GroupFolder> {
        self.levels.iter().map(|(level, _)| level)
    }

    /// Events at each level since the first reading, the inner one first.
    #[must_use]
    pub fn more(&self) -> Vec<More> {
        let limits = self.levels.first().map(|(group, _)| group.limits()).unwrap_or_default();
        let more = self.levels.iter().map(|(level, before)| {
            let limit = limits.iter().find(|limit| limit.is_hard && limit.path == level.path());
            More {
                path: level.path(),
                limit_bytes: limit.map(|limit| limit.limit_bytes),
                used_bytes: limit.map(|limit| limit.used_bytes),
                events: GroupEvents::of(level).since(before),
                is_killed_whole: is_killed_whole(level),
            }
        });
        more.collect()
    }

    /// Hard limit with the least memory left, of the group or of one above it.
    #[must_use]
    pub fn deciding_limit(&self) -> Option<GroupLimit> {
        let (group, _) = self.levels.first()?;
        group.limits().into_iter().filter(|limit| limit.is_hard).min_by_key(|limit| limit.free_bytes)
    }
}
