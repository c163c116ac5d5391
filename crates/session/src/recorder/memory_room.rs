//! How much memory is left, and by what: the machine, control groups of both versions with all that they lie in, limits of a process.
//!
//! Shared memory belongs to whoever touches a page first, and a group that has none left gets one of its processes killed. So the recorder
//! touches the buffers, after it has asked here.

use std::fs;
use std::path::{Path, PathBuf};

/// What is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    pub(crate) bytes: u64,
    /// What leaves no more.
    pub(crate) of: String,
}

/// What a process (`self` or its id) can still be charged for; `None` where nothing limits it that can be read.
pub(crate) fn of_process(process: &str) -> Option<Room> {
    let machine = [
        ("MemAvailable:", "", "the machine"),
        // (Only where the kernel promises no more than there is.)
        ("CommitLimit:", "Committed_AS:", "the machine's limit of promised memory (vm.overcommit_memory=2)"),
    ];
    let is_strict = is_promised_strictly();
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let of_machine = machine.iter().take(1 + usize::from(is_strict)).filter_map(|&(limit, used, of)| {
        let used = if used.is_empty() { 0 } else { kib_of(&info, used)? };
        Some(Room { bytes: kib_of(&info, limit)?.saturating_sub(used) << 10, of: of.to_owned() })
    });
    of_machine.chain(of_groups(process)).min_by_key(|room| room.bytes)
}

/// Whether the kernel promises no more memory than there is.
pub(crate) fn is_promised_strictly() -> bool {
    fs::read_to_string("/proc/sys/vm/overcommit_memory").is_ok_and(|mode| mode.trim() == "2")
}

/// What a process's own limits leave of its address space and of its private memory.
pub(crate) fn of_limits(process: &str) -> Option<Room> {
    let limits = fs::read_to_string(format!("/proc/{process}/limits")).ok()?;
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let kinds = [("Max address space", "VmSize:", "RLIMIT_AS"), ("Max data size", "VmData:", "RLIMIT_DATA")];
    let room = |(limit, used, of): (&str, &str, &str)| {
        let soft = limits.lines().find_map(|line| line.strip_prefix(limit))?.split_whitespace().next()?;
        let bytes = soft.parse::<u64>().ok()?.saturating_sub(kib_of(&status, used)? << 10);
        Some(Room { bytes, of: format!("the process's limit of memory ({of})") })
    };
    kinds.into_iter().filter_map(room).min_by_key(|room| room.bytes)
}

fn kib_of(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field)?.split_whitespace().next()?.parse().ok())
}

/// Files of a group in one version: limits, and what counts against them.
const V2: [(&str, &str, &str); 2] =
    [("memory.max", "memory.current", "inactive_file"), ("memory.high", "memory.current", "inactive_file")];
const V1: [(&str, &str, &str); 2] = [
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ("memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes", "total_inactive_file"),
];
/// Version 1 writes a number near the largest for no limit.
const NO_LIMIT: u64 = 1 << 60;

fn of_groups(process: &str) -> Vec<Room> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut rooms = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let is_v2 = number == "0" && controllers.is_empty();
        if !is_v2 && !controllers.split(',').any(|controller| controller == "memory") {
            continue;
        }
        let Some((top, mut group)) = mounts.lines().find_map(|mount| place(mount, is_v2, path)) else {
            continue;
        };
        loop {
            let files = if is_v2 { V2 } else { V1 };
            rooms.extend(files.into_iter().filter_map(|files| of_group(&group, files)));
            if group == top || !group.pop() {
                break;
            }
        }
    }
    rooms
}

/// Where a mount of the hierarchy begins, and where the group is in it. A line of mountinfo:
///
/// ```text
/// 32 31 0:29 /root-of-mount /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
/// ```
fn place(mount: &str, is_v2: bool, path: &str) -> Option<(PathBuf, PathBuf)> {
    let (place, kind) = mount.split_once(" - ")?;
    let mut place = place.split(' ').skip(3);
    let (root, top) = (place.next()?, Path::new(place.next()?));
    let mut kind = kind.split(' ');
    let filesystem = kind.next()?;
    let is_wanted = if is_v2 {
        filesystem == "cgroup2"
    } else {
        filesystem == "cgroup" && kind.nth(1)?.split(',').any(|option| option == "memory")
    };
    // A group outside of our namespace begins with `/..`.
    let below = if root == "/" { path } else { path.strip_prefix(root)? };
    let below = below.trim_start_matches('/');
    (is_wanted && !below.starts_with("..")).then(|| (top.to_owned(), top.join(below)))
}

fn of_group(group: &Path, (limit, used, cache): (&str, &str, &str)) -> Option<Room> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let limit = number(limit).filter(|&limit| limit < NO_LIMIT)?;
    let used = number(used)?;
    // What was read from files and not lately is given back first.
    let statistics = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let cached =
        statistics.lines().find_map(|line| line.strip_prefix(cache)?.trim().parse().ok()).unwrap_or(0);
    let bytes = limit.saturating_sub(used.saturating_sub(cached));
    Some(Room { bytes, of: format!("the control group {}", group.display()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_found_in_the_mount_of_its_hierarchy() {
        let v1 = "32 31 0:29 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory";
        let v2 = "41 31 0:38 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        let at = |top: &str, group: &str| Some((PathBuf::from(top), PathBuf::from(group)));
        assert_eq!(place(v1, false, "/a/b"), at("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/a/b"));
        assert_eq!(place(v2, true, "/docker/abc/d"), at("/sys/fs/cgroup", "/sys/fs/cgroup/d"));
        assert_eq!(place(v2, true, "/elsewhere"), None);
        assert_eq!(place(v2, true, "/docker/abc/../x"), None);
        assert_eq!(place(v1, true, "/a"), None);
        assert_eq!(place("nonsense", false, "/a"), None);
    }

    #[test]
    fn a_group_leaves_what_it_has_not_used_and_what_it_can_give_back() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("memory.max", "50000\n");
        write("memory.high", "max\n");
        write("memory.current", "30000\n");
        write("memory.stat", "anon 1\ninactive_file 4000\nactive_file 5000\n");
        assert_eq!(of_group(folder.path(), V2[0]).unwrap().bytes, 24_000);
        assert_eq!(of_group(folder.path(), V2[1]), None);
        assert_eq!(of_group(folder.path(), V1[0]), None);
        write("memory.limit_in_bytes", "9223372036854771712\n");
        write("memory.usage_in_bytes", "1\n");
        assert_eq!(of_group(folder.path(), V1[0]), None);
    }
}
