//! Memory of a control group: that of its processes, and the kernel's.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::control_groups::memory_group;
use crate::whole_file;

/// Memory of a group and all groups below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupMemory {
    /// Folder of the group.
    pub folder: PathBuf,
    /// Path of the group below the hierarchy's mount, from `/` on.
    pub path: String,
    /// Bytes charged to the group; `None` if the kernel does not report them.
    pub current_bytes: Option<u64>,
    /// Processes of the group.
    pub pids: Vec<u32>,
    /// Amounts from the kernel's counters.
    pub parts: GroupParts,
}

/// Memory of a group by kind, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupParts {
    /// Anonymous memory.
    pub anonymous_bytes: u64,
    /// Pages of files, mapped or not, without shared memory.
    pub file_bytes: u64,
    /// Pages of files that a process has mapped.
    pub mapped_file_bytes: u64,
    /// Shared memory.
    pub shared_memory_bytes: u64,
    /// Reclaimable kernel objects: names of files, inodes.
    pub slab_reclaimable_bytes: u64,
    /// Unreclaimable kernel objects.
    pub slab_unreclaimable_bytes: u64,
    /// Socket buffers.
    pub socket_bytes: u64,
    /// Page tables.
    pub page_table_bytes: u64,
    /// Kernel stacks.
    pub kernel_stack_bytes: u64,
    /// Other kernel memory.
    pub kernel_other_bytes: u64,
    /// Swapped-out memory.
    pub swapped_bytes: u64,
}

/// Reads the memory of the group that counts a process's memory.
pub fn group_memory(pid: u32) -> Option<GroupMemory> {
    let (top, group, is_v2) = memory_group(pid)?;
    Some(read(&top, &group, is_v2))
}

/// Reads the memory of a group below the mount point `top`.
pub(crate) fn read(top: &Path, group: &Path, is_v2: bool) -> GroupMemory {
    let folder = if group.as_os_str().is_empty() { top.to_owned() } else { top.join(group) };
    let number = |name: &str| whole_file::text(folder.join(name)).ok()?.trim().parse::<u64>().ok();
    let statistics = whole_file::text(folder.join("memory.stat")).unwrap_or_default();
    let statistics: BTreeMap<&str, u64> = statistics
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name, value.trim().parse().ok()?)))
        .collect();
    let of = |name: &str| statistics.get(name).copied().unwrap_or(0);
    let (parts, current_bytes) = if is_v2 {
        let kernel_bytes = of("kernel");
        let known_bytes = of("slab") + of("pagetables") + of("kernel_stack");
        let parts = GroupParts {
            anonymous_bytes: of("anon"),
            // The counter of files includes shared memory.
            file_bytes: of("file").saturating_sub(of("shmem")),
            mapped_file_bytes: of("file_mapped"),
            shared_memory_bytes: of("shmem"),
            slab_reclaimable_bytes: of("slab_reclaimable"),
            slab_unreclaimable_bytes: of("slab_unreclaimable"),
            socket_bytes: of("sock"),
            page_table_bytes: of("pagetables"),
            kernel_stack_bytes: of("kernel_stack"),
            kernel_other_bytes: kernel_bytes.saturating_sub(known_bytes),
            swapped_bytes: number("memory.swap.current").unwrap_or(0),
        };
        (parts, number("memory.current"))
    } else {
        let parts = GroupParts {
            anonymous_bytes: of("total_rss"),
            file_bytes: of("total_cache").saturating_sub(of("total_shmem")),
            mapped_file_bytes: of("total_mapped_file"),
            shared_memory_bytes: of("total_shmem"),
            socket_bytes: number("memory.kmem.tcp.usage_in_bytes").unwrap_or(0),
            // Version 1 does not divide kernel memory.
            kernel_other_bytes: number("memory.kmem.usage_in_bytes").unwrap_or(0),
            swapped_bytes: of("total_swap"),
            ..GroupParts::default()
        };
        (parts, number("memory.usage_in_bytes"))
    };
    let pids = group_pids(&folder);
    GroupMemory { path: format!("/{}", group.display()), folder, current_bytes, pids, parts }
}

/// Processes of a group and of all groups below it.
pub(crate) fn group_pids(folder: &Path) -> Vec<u32> {
    let mut pids = Vec::new();
    add_pids(folder, 0, &mut pids);
    pids
}

/// Adds the processes of a group and of all groups below it.
fn add_pids(folder: &Path, depth: u32, pids: &mut Vec<u32>) {
    /// Largest depth of nested groups that is read.
    const MOST_DEPTH: u32 = 32;
    let text = whole_file::text(folder.join("cgroup.procs")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.trim().parse::<u32>().ok()));
    // A folder has a link more for each folder in it. File systems that do not count have one.
    let has_none = folder.metadata().is_ok_and(|facts| facts.nlink() == 2);
    if has_none || depth == MOST_DEPTH {
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            add_pids(&entry.path(), depth + 1, pids);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_parts_of_version_2_and_the_processes_of_inner_groups_are_found() {
        let top = tempfile::tempdir().unwrap();
        let stat = "anon 100\nfile 70\nkernel 50\nkernel_stack 10\npagetables 5\nsock 3\nshmem 20\nfile_mapped 30\n\
                    slab_reclaimable 15\nslab_unreclaimable 5\nslab 20\nbroken\n";
        write(
            top.path(),
            &[
                ("a/memory.stat", stat),
                ("a/memory.current", "240\n"),
                ("a/cgroup.procs", "1\n2\n"),
                ("a/b/cgroup.procs", "3\nx\n"),
            ],
        );
        let found = read(top.path(), Path::new("a"), true);
        assert_eq!((found.path.as_str(), found.current_bytes), ("/a", Some(240)));
        assert_eq!(found.pids, [1, 2, 3]);
        assert_eq!((found.parts.file_bytes, found.parts.shared_memory_bytes), (50, 20));
        assert_eq!((found.parts.kernel_other_bytes, found.parts.slab_reclaimable_bytes), (15, 15));
    }

    #[test]
    fn version_1_sums_up_over_inner_groups() {
        let top = tempfile::tempdir().unwrap();
        let stat = "cache 1\ntotal_cache 70\ntotal_shmem 20\ntotal_rss 100\ntotal_mapped_file 30\n";
        write(
            top.path(),
            &[("memory.stat", stat), ("memory.kmem.usage_in_bytes", "9\n"), ("cgroup.procs", "4\n")],
        );
        let found = read(top.path(), Path::new(""), false);
        assert_eq!((found.parts.file_bytes, found.parts.anonymous_bytes), (50, 100));
        assert_eq!((found.parts.kernel_other_bytes, found.current_bytes), (9, None));
    }
}
