//! Memory limits of a process's control groups and all their ancestors, in both versions.

use std::path::{Path, PathBuf};

use crate::first_thread::folder;
use crate::mounts::{Mount, mounts};
use crate::whole_file;

/// A memory limit of a group, and the memory left below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupLimit {
    /// Folder of the group.
    pub folder: PathBuf,
    /// Path of the group below the hierarchy's mount, from `/` on.
    pub path: String,
    /// Limit in bytes.
    pub limit_bytes: u64,
    /// Bytes that count against the limit.
    pub used_bytes: u64,
    /// Bytes that the processes of the group can still allocate.
    pub free_bytes: u64,
    /// True if the kernel kills a process above the limit; otherwise it slows all of them down.
    pub is_hard: bool,
}

/// Names in a group's folder: the limit, the amount that counts against it, and counters of pages
/// of files in memory.stat. These are the pages not used lately, all others, and those that
/// processes have mapped.
type Files = (&'static str, &'static str, [&'static str; 3]);
const V2_PAGES: [&str; 3] = ["inactive_file", "active_file", "file_mapped"];
const V2: [Files; 2] = [("memory.max", "memory.current", V2_PAGES), (SOFT, "memory.current", V2_PAGES)];
const V1_PAGES: [&str; 3] = ["total_inactive_file", "total_active_file", "total_mapped_file"];
const V1: [Files; 2] = [
    ("memory.limit_in_bytes", "memory.usage_in_bytes", V1_PAGES),
    ("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes", V1_PAGES),
];
const SOFT: &str = "memory.high";
/// Smallest number that stands for an absent limit: version 1 writes one near the largest.
const NO_LIMIT: u64 = 1 << 60;

/// Returns the readable memory limits of a process's groups.
pub fn memory_limits(pid: u32) -> Vec<GroupLimit> {
    let groups = whole_file::text(folder(pid).join("cgroup")).unwrap_or_default();
    let mounts = mounts();
    let places = groups.lines().filter_map(|line| place(line, &mounts));
    places.flat_map(|(top, group, files)| limits_from(&top, &group, files)).collect()
}

/// True if a control group's freezer stops the process (either version), as far as that can be
/// read.
pub fn is_frozen(pid: u32) -> bool {
    let groups = whole_file::text(folder(pid).join("cgroup")).unwrap_or_default();
    let mounts = mounts();
    let unified = groups.lines().filter(|line| line.starts_with("0::"));
    let places = unified.filter_map(|line| place(line, &mounts));
    let mut events =
        places.filter_map(|(top, group, _)| whole_file::text(top.join(group).join("cgroup.events")).ok());
    let is_of_v2 = events.any(|events| events.lines().any(|line| line == "frozen 1"));
    // In version 1 the threads of a frozen process wait in a function of this name.
    let waits_in = || whole_file::text(folder(pid).join("wchan")).unwrap_or_default();
    is_of_v2 || waits_in().trim() == "__refrigerator"
}

/// Returns the group that counts a process's memory: mount point of the hierarchy, group below it,
/// and whether it is version 2.
pub(crate) fn memory_group(pid: u32) -> Option<(PathBuf, PathBuf, bool)> {
    let groups = whole_file::text(folder(pid).join("cgroup")).unwrap_or_default();
    let mounts = mounts();
    let places = groups.lines().filter_map(|line| place(line, &mounts));
    let mut found: Vec<_> = places.map(|(top, group, files)| (top, group, files == V2)).collect();
    // If both versions are mounted, only one of them counts memory.
    found.retain(|(top, group, _)| top.join(group).join("memory.stat").exists());
    found.into_iter().next()
}

/// Parses a line of `cgroup`: `0::/user.slice/…` in version 2, `7:cpu,memory:/…` in version 1.
/// Returns the mount point of the memory hierarchy, the group in it, and the group's file names.
fn place(line: &str, mounts: &[Mount]) -> Option<(PathBuf, PathBuf, [Files; 2])> {
    let mut fields = line.splitn(3, ':');
    let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let has_memory = |list: &str| list.split(',').any(|name| name == "memory");
    let is_v2 = number == "0" && controllers.is_empty();
    // The path of a group outside this process's namespace begins with `/..`: its files cannot be
    // named.
    if !(is_v2 || has_memory(controllers)) || path.split('/').any(|part| part == "..") {
        return None;
    }
    let mount = mounts.iter().find(|mount| match is_v2 {
        true => mount.filesystem == "cgroup2",
        false => mount.filesystem == "cgroup" && has_memory(&mount.filesystem_options),
    })?;
    // A mount may show only a part of the hierarchy, for example in a container.
    let below = Path::new(path).strip_prefix(&mount.root).ok()?.to_owned();
    Some((mount.point.clone(), below, if is_v2 { V2 } else { V1 }))
}

/// Mounts of hierarchies that count memory, and whether each is of version 2.
pub(crate) fn memory_hierarchies() -> Vec<(Mount, bool)> {
    let has_memory = |mount: &Mount| mount.filesystem_options.split(',').any(|name| name == "memory");
    let of = |mount: Mount| match mount.filesystem.as_str() {
        "cgroup2" => Some((mount, true)),
        "cgroup" if has_memory(&mount) => Some((mount, false)),
        _ => None,
    };
    mounts().into_iter().filter_map(of).collect()
}

/// Returns the readable limits of a group and of the groups above it.
pub(crate) fn limits_of_group(top: &Path, group: &Path, is_v2: bool) -> Vec<GroupLimit> {
    limits_from(top, group, if is_v2 { V2 } else { V1 })
}

fn limits_from(top: &Path, group: &Path, files: [Files; 2]) -> Vec<GroupLimit> {
    let of_each = |group: &Path| files.map(|files| limit(top, group, files));
    group.ancestors().flat_map(of_each).flatten().collect()
}

fn limit(top: &Path, group: &Path, (limit, used, pages): Files) -> Option<GroupLimit> {
    let folder = if group.as_os_str().is_empty() { top.to_owned() } else { top.join(group) };
    let number = |name: &str| whole_file::text(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit_bytes = number(limit).filter(|&limit| limit < NO_LIMIT)?;
    let used_bytes = number(used)?;
    // The kernel takes pages of files back before it kills. Those that processes have mapped are
    // mostly the programs themselves, which would be read from the disk again and again.
    let statistics = whole_file::text(folder.join("memory.stat")).unwrap_or_default();
    let counter = |name: &str| {
        let line = statistics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let [unused, others, mapped] = pages.map(counter);
    let cached = unused.saturating_add(others.saturating_sub(mapped));
    let free_bytes = limit_bytes.saturating_sub(used_bytes.saturating_sub(cached));
    let path = format!("/{}", group.display());
    Some(GroupLimit { folder, path, limit_bytes, used_bytes, free_bytes, is_hard: limit != SOFT })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_group_is_found_in_the_mount_of_its_hierarchy() {
        let v1 = b"32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory";
        let v2 = b"41 31 0:38 /docker/abc /sys/fs/cgroup rw master:15 - cgroup2 cgroup2 rw";
        let at = |mounts: &[u8], line: &str| {
            place(line, &crate::mounts::parse(mounts)).map(|(top, group, _)| top.join(group))
        };
        assert_eq!(at(v1, "7:cpu,memory:/a/b"), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(at(v2, "0::/docker/abc/d"), Some("/sys/fs/cgroup/d".into()));
        assert_eq!(at(v2, "0::/docker/abcd"), None);
        assert_eq!(at(v2, "0::/elsewhere"), None);
        assert_eq!(at(v2, "0::/docker/abc/../x"), None);
        assert_eq!(at(v1, "0::/a"), None);
        assert_eq!(at(v1, "12:cpuset:/a"), None);
        assert_eq!(at(b"nonsense", "7:memory:/a"), None);
    }

    #[test]
    fn a_group_and_those_above_it_leave_what_is_not_used_and_what_they_can_give_back() {
        let mount = tempfile::tempdir().unwrap();
        let group = mount.path().join("a/b");
        fs::create_dir_all(&group).unwrap();
        let write = |name: &str, text: &str| fs::write(mount.path().join("a").join(name), text).unwrap();
        write("b/memory.max", "max\n");
        write("b/memory.current", "500\n");
        write("memory.max", "50000\n");
        write("memory.high", "40000\n");
        write("memory.current", "30000\n");
        write("memory.stat", "anon 1\nfile_mapped 3000\ninactive_file 4000\nactive_file 5000\n");
        let found = limits_from(mount.path(), Path::new("a/b"), V2);
        let facts: Vec<_> = found.iter().map(|limit| (limit.free_bytes, limit.is_hard)).collect();
        assert_eq!(facts, [(26_000, true), (16_000, false)]);
        assert_eq!((found[0].path.as_str(), found[0].limit_bytes), ("/a", 50_000));
        assert_eq!(found[0].folder, mount.path().join("a"));
        assert_eq!(limits_from(mount.path(), Path::new("c"), V2), []);
    }

    #[test]
    fn version_1_writes_a_huge_number_for_no_limit() {
        let mount = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(mount.path().join(name), text).unwrap();
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "1\n");
        assert_eq!(limits_from(mount.path(), Path::new(""), V1), []);
        write("memory.limit_in_bytes", "4096\n");
        assert_eq!(limits_from(mount.path(), Path::new(""), V1)[0].free_bytes, 4095);
    }
}
