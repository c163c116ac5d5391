//! Counters of a control group's events: limits that were hit, and kills.

use heapr_proc::GroupFolder;
use serde::{Deserialize, Serialize};

/// Counters of a group; `None`: the kernel does not report the counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GroupEvents {
    /// Times that the group was out of memory (version 2).
    pub oom: Option<u64>,
    /// Processes of the group that the kernel killed for lack of memory, whatever limit was hit.
    pub oom_kill: Option<u64>,
    /// Times that the kernel killed this whole group (version 2).
    pub oom_group_kill: Option<u64>,
    /// Times that usage met the hard limit.
    pub limit_hits: Option<u64>,
    /// Times that usage met the soft limit, which slows the group down (version 2).
    pub high: Option<u64>,
    /// Processes that systemd-oomd has killed in the group.
    pub oomd_kill: Option<u64>,
}

/// Names of the attribute in which systemd-oomd counts the killed processes of a group.
const OOMD_ATTRIBUTES: [&str; 2] = ["trusted.oomd_kill", "user.oomd_kill"];

impl GroupEvents {
    /// Reads the counters of a group.
    #[must_use]
    pub fn of(group: &GroupFolder) -> Self {
        let oomd_kill = oomd_kill(group);
        if group.is_v2() {
            let event = |name: &str| group.value("memory.events", name);
            // The other file counts events of groups below, too (it is all that old kernels have).
            let own = |name: &str| group.value("memory.events.local", name).or_else(|| event(name));
            return Self {
                oom: own("oom"),
                oom_kill: event("oom_kill"),
                oom_group_kill: own("oom_group_kill"),
                limit_hits: own("max"),
                high: event("high"),
                oomd_kill,
            };
        }
        Self {
            oom_kill: group.value("memory.oom_control", "oom_kill"),
            limit_hits: group.number("memory.failcnt"),
            oomd_kill,
            ..Self::default()
        }
    }

    /// Difference to an earlier reading. A counter that one of the readings lacks stays unknown. So
    /// does one that has fallen, which is that of a new group of the same name.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let more = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before?);
        Self {
            oom: more(self.oom, earlier.oom),
            oom_kill: more(self.oom_kill, earlier.oom_kill),
            oom_group_kill: more(self.oom_group_kill, earlier.oom_group_kill),
            limit_hits: more(self.limit_hits, earlier.limit_hits),
            high: more(self.high, earlier.high),
            // The attribute does not exist before the first kill.
            oomd_kill: more(self.oomd_kill, Some(earlier.oomd_kill.unwrap_or(0))),
        }
    }
}

fn oomd_kill(group: &GroupFolder) -> Option<u64> {
    let folder = group.folder();
    OOMD_ATTRIBUTES.iter().find_map(|name| {
        let mut value = [0_u8; 32];
        let length = rustix::fs::getxattr(&folder, *name, &mut value[..]).ok()?;
        std::str::from_utf8(value.get(..length)?).ok()?.trim().parse().ok()
    })
}

/// True if the kernel kills all processes of the group together.
pub(crate) fn is_killed_whole(group: &GroupFolder) -> bool {
    group.is_v2() && group.number("memory.oom.group") == Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_known_where_both_readings_are() {
        let before = GroupEvents { oom_kill: Some(2), limit_hits: Some(10), ..GroupEvents::default() };
        let now = GroupEvents { oom_kill: Some(3), high: Some(1), oomd_kill: Some(1), ..before };
        let more = now.since(&before);
        assert_eq!((more.oom_kill, more.limit_hits, more.high), (Some(1), Some(0), None));
        assert_eq!(more.oomd_kill, Some(1));
        assert_eq!(before.since(&now).oom_kill, None);
    }
}
