//! How much memory a process may still take: the machine's, and what its control groups leave it.

use std::fs;
use std::path::{Path, PathBuf};

use super::process::status_field;

/// A limit that is nearer than the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRoom {
    /// How many bytes the process can take until something happens.
    pub free_bytes: u64,
    /// What sets the limit.
    pub limited_by: MemoryLimit,
}

/// What ends a process that takes more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryLimit {
    /// The memory and swap of the machine.
    Machine,
    /// A control group.
    ControlGroup {
        /// Its path below the root of the hierarchy.
        path: String,
        /// Its limit.
        limit_bytes: u64,
    },
}

/// The resident memory of a process.
pub fn resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kilobytes(status_field(&status, "VmRSS"))
}

/// The most resident memory that a process has had.
pub(crate) fn most_resident_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kilobytes(status_field(&status, "VmHWM"))
}

/// The resident memory of a process that is no file's: its heaps, stacks and buffers.
pub fn anonymous_bytes(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    kilobytes(status_field(&status, "RssAnon"))
}

/// The nearest limit of a process.
pub fn memory_room(pid: u32) -> MemoryRoom {
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free_bytes =
        kilobytes(status_field(&meminfo, "MemAvailable")) + kilobytes(status_field(&meminfo, "SwapFree"));
    let mut room = MemoryRoom { free_bytes, limited_by: MemoryLimit::Machine };
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for (kind, group) in memory_groups(&groups) {
        let Some((mount, root)) = mount_of(kind, &mounts) else { continue };
        // A mount may show only a part of the hierarchy, as inside of a container.
        let Some(below) = group.strip_prefix(root.trim_end_matches('/')) else { continue };
        let Some(nearest) = nearest_limit(kind, &mount, below.trim_start_matches('/')) else { continue };
        if nearest.free_bytes < room.free_bytes {
            room = nearest;
        }
    }
    room
}

fn kilobytes(value: Option<&str>) -> u64 {
    value
        .and_then(|value| value.strip_suffix("kB")?.trim().parse::<u64>().ok())
        .unwrap_or(0)
        .saturating_mul(1024)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hierarchy {
    One,
    Two,
}

/// `0::/user.slice/…` is the unified hierarchy, `7:memory:/…` the old memory controller.
fn memory_groups(text: &str) -> Vec<(Hierarchy, &str)> {
    text.lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            // A group outside of our own namespace begins with `/..`: its files cannot be named.
            let is_nameable = path.starts_with('/') && !path.split('/').any(|part| part == "..");
            let kind = match (number, controllers) {
                ("0", "") => Hierarchy::Two,
                (_, controllers) if controllers.split(',').any(|name| name == "memory") => Hierarchy::One,
                _ => return None,
            };
            is_nameable.then_some((kind, path))
        })
        .collect()
}

/// Where a hierarchy is mounted, and which part of it.
///
/// ```text
/// 36 35 0:31 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:15 - cgroup cgroup rw,memory
///            root        mount point                                 type          options
/// ```
fn mount_of(kind: Hierarchy, mounts: &str) -> Option<(PathBuf, String)> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (file_system, options) = (right.next()?, right.nth(1).unwrap_or_default());
        let fits = match kind {
            Hierarchy::Two => file_system == "cgroup2",
            Hierarchy::One => file_system == "cgroup" && options.split(',').any(|option| option == "memory"),
        };
        fits.then(|| (PathBuf::from(point), root.to_owned()))
    })
}

/// The least room that a group or one of those above it leaves.
fn nearest_limit(kind: Hierarchy, mount: &Path, group: &str) -> Option<MemoryRoom> {
    // Written in place of a limit where there is none.
    const NONE_IN_ONE: u64 = 1 << 60;
    let (limit_file, usage_file, cache_field) = match kind {
        Hierarchy::One => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        Hierarchy::Two => ("memory.max", "memory.current", "inactive_file"),
    };
    let mut nearest: Option<MemoryRoom> = None;
    for ancestor in Path::new(group).ancestors() {
        let directory = mount.join(ancestor);
        let number = |file: &str| fs::read_to_string(directory.join(file)).ok()?.trim().parse::<u64>().ok();
        let (Some(limit_bytes), Some(used_bytes)) = (number(limit_file), number(usage_file)) else {
            continue;
        };
        if limit_bytes >= NONE_IN_ONE {
            continue;
        }
        // The kernel gives the page cache back before it kills anybody.
        let stat = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
        let cache_bytes = stat
            .lines()
            .find_map(|line| line.strip_prefix(cache_field)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
            .unwrap_or(0);
        let free_bytes = limit_bytes.saturating_sub(used_bytes.saturating_sub(cache_bytes));
        if nearest.as_ref().is_none_or(|nearest| free_bytes < nearest.free_bytes) {
            let path = format!("/{}", ancestor.display());
            nearest =
                Some(MemoryRoom { free_bytes, limited_by: MemoryLimit::ControlGroup { path, limit_bytes } });
        }
    }
    nearest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_of_the_groups_above_counts() {
        let mount = tempfile::tempdir().unwrap();
        let group = mount.path().join("a/b");
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("memory.max"), "max\n").unwrap();
        fs::write(group.join("memory.current"), "500\n").unwrap();
        fs::write(mount.path().join("a/memory.max"), "10000\n").unwrap();
        fs::write(mount.path().join("a/memory.current"), "7000\n").unwrap();
        fs::write(mount.path().join("a/memory.stat"), "anon 5\ninactive_file 1000\nactive_file 9\n").unwrap();
        let room = nearest_limit(Hierarchy::Two, mount.path(), "a/b").unwrap();
        let limited_by = MemoryLimit::ControlGroup { path: "/a".into(), limit_bytes: 10_000 };
        assert_eq!(room, MemoryRoom { free_bytes: 4000, limited_by });
        assert_eq!(nearest_limit(Hierarchy::Two, mount.path(), "c"), None);
    }

    #[test]
    fn the_old_hierarchy_writes_a_huge_number_for_no_limit() {
        let mount = tempfile::tempdir().unwrap();
        fs::write(mount.path().join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        fs::write(mount.path().join("memory.usage_in_bytes"), "1\n").unwrap();
        assert_eq!(nearest_limit(Hierarchy::One, mount.path(), ""), None);
        fs::write(mount.path().join("memory.limit_in_bytes"), "4096\n").unwrap();
        assert_eq!(nearest_limit(Hierarchy::One, mount.path(), "").unwrap().free_bytes, 4095);
    }

    #[test]
    fn groups_and_mounts_of_both_hierarchies_are_found() {
        let groups = "12:cpuset:/x\n7:cpu,memory:/docker/abc\n0::/system.slice/app.service\n0::/../other\n";
        assert_eq!(
            memory_groups(groups),
            [(Hierarchy::One, "/docker/abc"), (Hierarchy::Two, "/system.slice/app.service")]
        );
        let mounts = "36 35 0:31 /docker /sys/fs/cgroup/memory ro,nosuid master:15 - cgroup cgroup rw,memory\n\
                      30 25 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
        assert_eq!(
            mount_of(Hierarchy::One, mounts).unwrap(),
            ("/sys/fs/cgroup/memory".into(), "/docker".to_owned())
        );
        assert_eq!(
            mount_of(Hierarchy::Two, mounts).unwrap(),
            ("/sys/fs/cgroup/unified".into(), "/".to_owned())
        );
    }

    #[test]
    fn this_machine_has_room() {
        let room = memory_room(std::process::id());
        assert!(room.free_bytes > 0, "{room:?}");
        assert!(resident_bytes(std::process::id()) > 100_000);
    }
}
