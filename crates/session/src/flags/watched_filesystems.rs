//! Finds the mounted filesystems that programs can start from: those with files and without
//! `noexec`.

use std::path::PathBuf;

use heapr_known::allocator_libraries::MUSL_LOADER;
use heapr_proc::mounts::{Mount, mounts};

/// Filesystems of the kernel's own, without programs.
const WITHOUT_PROGRAMS: [&str; 22] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sysfs",
    "tracefs",
];

/// Returns device and one mount point of each filesystem that programs can start from.
pub(crate) fn mount_points() -> Vec<(String, PathBuf)> {
    with_programs(mounts())
}

fn with_programs(mounts: Vec<Mount>) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for mount in mounts {
        let is_without = WITHOUT_PROGRAMS.contains(&mount.filesystem.as_str());
        let forbids = mount.options.split(',').any(|option| option == "noexec");
        if !is_without && !forbids && found.iter().all(|(other, _)| *other != mount.device) {
            found.push((mount.device, mount.point));
        }
    }
    found
}

/// Paths of the program loaders of this machine.
pub(crate) fn loaders() -> Vec<PathBuf> {
    let folders = ["/lib64", "/lib", "/usr/lib64", "/usr/lib"];
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let is_loader = |name: &str| name.starts_with("ld-linux") || name.starts_with(MUSL_LOADER);
    entries
        .filter(|entry| entry.file_name().to_str().is_some_and(is_loader))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_holds_programs_is_watched_and_each_once() {
        let text = b"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw\n\
            23 22 0:21 / /proc rw,nosuid,noexec - proc proc rw\n\
            24 22 0:22 / /dev rw - devtmpfs dev rw\n\
            25 22 0:23 / /tmp\\040dir rw,nosuid - tmpfs tmp rw\n\
            26 22 0:24 / /run rw,noexec - tmpfs run rw\n\
            27 22 254:0 /home /bind rw - ext4 /dev/root rw\n\
            broken\n";
        let found = with_programs(heapr_proc::mounts::parse(text));
        assert_eq!(found, [("254:0".to_owned(), "/".into()), ("0:23".to_owned(), "/tmp dir".into())]);
    }

    #[test]
    fn the_root_of_this_machine_is_watched_and_its_loader_known() {
        assert!(mount_points().iter().any(|(_, point)| point == std::path::Path::new("/")));
        assert!(!loaders().is_empty());
    }
}
