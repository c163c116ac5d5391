//! A control group and the groups above it: the limit that decides, and the events at each level.

use std::os::unix::fs::MetadataExt as _;

use heapr_proc::{GroupFolder, GroupLimit};
use serde::{Deserialize, Serialize};

use crate::group_events::{GroupEvents, is_killed_whole};

/// A group and the groups above it, with the counters of the first reading.
#[derive(Debug, Clone)]
pub struct Levels {
    levels: Vec<Level>,
}

#[derive(Debug, Clone)]
struct Level {
    group: GroupFolder,
    /// Inode of the group's folder: a new group of the same name has another one.
    inode: Option<u64>,
    /// Counters of the first reading.
    before: GroupEvents,
}

impl Level {
    fn of(group: GroupFolder) -> Self {
        Self { inode: inode(&group), before: GroupEvents::of(&group), group }
    }

    /// Events since the first reading; unknown if the group is gone.
    fn events(&self) -> GroupEvents {
        if self.inode.is_none() || inode(&self.group) != self.inode {
            return GroupEvents::default();
        }
        GroupEvents::of(&self.group).since(&self.before)
    }
}

fn inode(group: &GroupFolder) -> Option<u64> {
    group.folder().metadata().ok().map(|facts| facts.ino())
}

/// Root of a namespace, which has a limit and counters of its own, unlike the machine's root.
fn namespace_root(group: &GroupFolder) -> Option<GroupFolder> {
    let is_above = |root: &GroupFolder| {
        root.is_v2() && group.is_v2() && !group.is_root() && group.folder().starts_with(root.folder())
    };
    let root = GroupFolder::roots().into_iter().find(is_above)?;
    root.folder().join("memory.events").exists().then_some(root)
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
        let levels = group.with_ancestors().into_iter().chain(namespace_root(group));
        Self { levels: levels.map(Level::of).collect() }
    }

    /// Replaces the counters of the first reading, by path: those that an earlier watcher has read.
    pub fn start_from(&mut self, earlier: &[(String, GroupEvents)]) {
        for level in &mut self.levels {
            if let Some((_, before)) = earlier.iter().find(|(path, _)| *path == level.group.path()) {
                level.before = *before;
            }
        }
    }

    /// Makes the present counters those of the first reading.
    pub fn restart(&mut self) {
        for level in &mut self.levels {
            // A group that is gone keeps its last counters.
            if level.group.exists() {
                *level = Level::of(level.group.clone());
            }
        }
    }

    /// Counters of the first reading, by path.
    #[must_use]
    pub fn counters(&self) -> Vec<(String, GroupEvents)> {
        self.levels.iter().map(|level| (level.group.path(), level.before)).collect()
    }

    /// Groups, the inner one first.
    pub fn groups(&self) -> impl Iterator<Item = &GroupFolder> {
        self.levels.iter().map(|level| &level.group)
    }

    /// Events at each level since the first reading, the inner one first.
    #[must_use]
    pub fn more(&self) -> Vec<More> {
        let limits = self.levels.first().map(|own| own.group.limits()).unwrap_or_default();
        let more = self.levels.iter().map(|level| {
            let path = level.group.path();
            let limit = limits.iter().find(|limit| limit.is_hard && limit.path == path);
            More {
                limit_bytes: limit.map(|limit| limit.limit_bytes),
                used_bytes: limit.map(|limit| limit.used_bytes),
                events: level.events(),
                is_killed_whole: is_killed_whole(&level.group),
                path,
            }
        });
        more.collect()
    }

    /// True if a process of the groups was killed for lack of memory since the first reading.
    #[must_use]
    pub fn has_kill(&self) -> bool {
        let is_some = |count: Option<u64>| count.is_some_and(|count| count > 0);
        let events = self.levels.iter().map(Level::events);
        events.into_iter().any(|events| is_some(events.oom_kill) || is_some(events.oomd_kill))
    }

    /// Events of the level with this path since the first reading.
    #[must_use]
    pub fn events_of(&self, path: &str) -> Option<GroupEvents> {
        self.levels.iter().find(|level| level.group.path() == path).map(Level::events)
    }
}

/// Hard limit with the least memory left, among those of a group and of the groups above it.
#[must_use]
pub fn deciding_limit(limits: &[GroupLimit]) -> Option<&GroupLimit> {
    limits.iter().filter(|limit| limit.is_hard).min_by_key(|limit| limit.free_bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).unwrap());
    }

    #[test]
    fn version_2_tells_the_level_whose_limit_was_hit_and_the_one_that_decides() {
        let top = tempfile::tempdir().unwrap();
        let (pod, web) = (top.path().join("pod"), top.path().join("pod/web"));
        let quiet = "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n";
        write(
            &pod,
            &[
                ("memory.events", quiet),
                ("memory.max", "1000\n"),
                ("memory.current", "900\n"),
                ("memory.stat", "file 0\n"),
                ("memory.oom.group", "1\n"),
            ],
        );
        write(
            &web,
            &[
                ("memory.events", quiet),
                ("memory.max", "max\n"),
                ("memory.current", "800\n"),
                ("memory.stat", ""),
                ("memory.oom.group", "0\n"),
            ],
        );
        let group = GroupFolder::copied(top.path(), "pod/web", true);
        let (levels, limits) = (Levels::of(&group), group.limits());
        let limit = deciding_limit(&limits).unwrap();
        assert_eq!((limit.path.as_str(), limit.limit_bytes, limit.free_bytes), ("/pod", 1000, 100));
        fs::write(pod.join("memory.events"), "max 7\noom 1\noom_kill 2\noom_group_kill 1\n").unwrap();
        fs::write(web.join("memory.events"), "max 0\noom 0\noom_kill 1\noom_group_kill 0\n").unwrap();
        let [own, above] = levels.more().try_into().unwrap();
        assert_eq!(
            (own.events.oom_kill, own.events.limit_hits, own.is_killed_whole),
            (Some(1), Some(0), false)
        );
        assert_eq!((above.events.limit_hits, above.events.oom_group_kill), (Some(7), Some(1)));
        assert!(above.is_killed_whole && above.limit_bytes == Some(1000));
        assert!(levels.has_kill());
        assert_eq!(levels.events_of("/pod").and_then(|events| events.limit_hits), Some(7));
        let mut next = Levels::of(&GroupFolder::copied(top.path(), "pod/web", true));
        assert_eq!(next.more()[0].events.oom_kill, Some(0));
        assert!(!next.has_kill());
        next.start_from(&levels.counters());
        assert_eq!(next.more()[0].events.oom_kill, Some(1));
    }

    #[test]
    fn version_1_has_its_counters_in_other_files() {
        let top = tempfile::tempdir().unwrap();
        let oom_control = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        write(&top.path().join("web"), &[("memory.oom_control", oom_control), ("memory.failcnt", "9\n")]);
        let events = GroupEvents::of(&GroupFolder::copied(top.path(), "web", false));
        assert_eq!((events.oom_kill, events.limit_hits, events.oom), (Some(3), Some(9), None));
    }
}
