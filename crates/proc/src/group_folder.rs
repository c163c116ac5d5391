//! A control group of the memory hierarchy, which outlives the processes in it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::control_groups::{GroupLimit, limits_of_group, memory_group, memory_hierarchies};
use crate::group_memory::{GroupMemory, group_pids, read};
use crate::whole_file;

/// Control group of the hierarchy that counts memory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupFolder {
    top: PathBuf,
    group: PathBuf,
    is_v2: bool,
}

impl GroupFolder {
    /// Finds the group that counts a process's memory.
    pub fn of_process(pid: u32) -> Option<Self> {
        let (top, group, is_v2) = memory_group(pid)?;
        Some(Self { top, group, is_v2 })
    }

    /// Finds a group by its path from the hierarchy's root, or by the path of its folder.
    pub fn named(path: &str) -> Option<Self> {
        let path = Path::new(path);
        let hierarchies = memory_hierarchies();
        let mut found = hierarchies.into_iter().filter_map(|(mount, is_v2)| {
            let below = path.strip_prefix(&mount.point).or_else(|_| path.strip_prefix(&mount.root)).ok()?;
            let is_inside = below.components().all(|part| matches!(part, std::path::Component::Normal(_)));
            let group = Self { top: mount.point, group: below.to_owned(), is_v2 };
            (is_inside && group.exists()).then_some(group)
        });
        found.next()
    }

    /// The hierarchies' root groups.
    pub fn roots() -> Vec<Self> {
        let root = |(mount, is_v2): (crate::mounts::Mount, bool)| Self {
            top: mount.point,
            group: PathBuf::new(),
            is_v2,
        };
        memory_hierarchies().into_iter().map(root).filter(|root| root.folder().exists()).collect()
    }

    /// Group in a copy of a hierarchy's files: `group` is its path below the folder `top`.
    pub fn copied(top: &Path, group: &str, is_v2: bool) -> Self {
        Self { top: top.to_owned(), group: group.into(), is_v2 }
    }

    /// Folder of the group.
    pub fn folder(&self) -> PathBuf {
        if self.is_root() { self.top.clone() } else { self.top.join(&self.group) }
    }

    /// Path below the hierarchy's mount, from `/` on.
    pub fn path(&self) -> String {
        format!("/{}", self.group.display())
    }

    /// True for version 2 of control groups.
    pub fn is_v2(&self) -> bool {
        self.is_v2
    }

    /// True for the root of the hierarchy, which has no limit.
    pub fn is_root(&self) -> bool {
        self.group.as_os_str().is_empty()
    }

    /// True while the group exists and counts memory.
    pub fn exists(&self) -> bool {
        self.is_root() || self.folder().join("memory.stat").exists()
    }

    /// Memory of the group and of the groups below it.
    pub fn memory(&self) -> GroupMemory {
        read(&self.top, &self.group, self.is_v2)
    }

    /// Processes of the group and of the groups below it.
    pub fn pids(&self) -> Vec<u32> {
        group_pids(&self.folder())
    }

    /// Limits of the group and of the groups above it, the group's own first.
    pub fn limits(&self) -> Vec<GroupLimit> {
        limits_of_group(&self.top, &self.group, self.is_v2)
    }

    /// The group and the groups above it, without the root.
    pub fn with_ancestors(&self) -> Vec<Self> {
        let of = |group: &Path| Self { group: group.to_owned(), ..self.clone() };
        self.group.ancestors().filter(|group| !group.as_os_str().is_empty()).map(of).collect()
    }

    /// Groups directly below, by name.
    pub fn below(&self) -> Vec<Self> {
        let entries = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let of = |entry: fs::DirEntry| Self { group: self.group.join(entry.file_name()), ..self.clone() };
        let mut found: Vec<Self> = folders.map(of).collect();
        found.sort_unstable();
        found
    }

    /// Number in one of the group's files; `None` if it is no number, or cannot be read.
    pub fn number(&self, file: &str) -> Option<u64> {
        whole_file::text(self.folder().join(file)).ok()?.trim().parse().ok()
    }

    /// Value of a name in one of the group's files of names and numbers.
    pub fn value(&self, file: &str, name: &str) -> Option<u64> {
        let text = whole_file::text(self.folder().join(file)).ok()?;
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_a_path_a_folder_and_groups_above_and_below_it() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("a/b/c")).unwrap();
        fs::write(top.path().join("a/b/memory.stat"), "anon 5\n").unwrap();
        fs::write(top.path().join("a/b/memory.events"), "low 0\noom_kill 3\nbroken\n").unwrap();
        fs::write(top.path().join("a/b/memory.peak"), "77\n").unwrap();
        let group = GroupFolder::copied(top.path(), "a/b", true);
        assert_eq!((group.path().as_str(), group.exists(), group.is_root()), ("/a/b", true, false));
        let above: Vec<String> = group.with_ancestors().iter().map(GroupFolder::path).collect();
        assert_eq!(above, ["/a/b", "/a"]);
        assert_eq!(group.below().iter().map(GroupFolder::path).collect::<Vec<_>>(), ["/a/b/c"]);
        assert_eq!(group.value("memory.events", "oom_kill"), Some(3));
        assert_eq!(group.value("memory.events", "oom"), None);
        assert_eq!(group.number("memory.peak"), Some(77));
        assert_eq!(group.memory().parts.anonymous_bytes, 5);
    }

    #[test]
    fn names_that_lead_out_of_the_hierarchy_are_refused() {
        assert_eq!(GroupFolder::named("/../../etc"), None);
        assert_eq!(GroupFolder::named("/no such group of heapr"), None);
    }
}
