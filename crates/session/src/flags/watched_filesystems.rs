//! Where programs can start from: the mounted filesystems that hold files and allow programs.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Filesystems of the kernel's own, which hold no programs.
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

/// Device and one mount point of each filesystem that programs can start from.
pub(crate) fn mount_points() -> Vec<(String, PathBuf)> {
    parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// `36 35 98:0 /root /point rw,noexec - ext4 /dev/root rw`, with optional fields before the dash.
fn parse(text: &[u8]) -> Vec<(String, PathBuf)> {
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
        let dash = words.iter().position(|word| *word == b"-");
        let (Some(device), Some(point), Some(options)) = (words.get(2), words.get(4), words.get(5)) else {
            continue;
        };
        let kind = dash.and_then(|dash| words.get(dash + 1)).copied().unwrap_or_default();
        let is_without = WITHOUT_PROGRAMS.iter().any(|name| name.as_bytes() == kind);
        let forbids = options.split(|&byte| byte == b',').any(|option| option == b"noexec");
        let device = String::from_utf8_lossy(device).into_owned();
        if is_without || forbids || found.iter().any(|(other, _)| *other == device) {
            continue;
        }
        found.push((device, PathBuf::from(OsString::from_vec(unescaped(point)))));
    }
    found
}

/// The kernel writes blanks and the like as a backslash and three octal digits.
fn unescaped(point: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(point.len());
    let mut rest = point;
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        match (first, digits) {
            (b'\\', Some(digits)) => {
                let value = digits.iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                bytes.push((value & 0xff) as u8);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

/// The programs' loaders of this machine.
pub(crate) fn loaders() -> Vec<PathBuf> {
    let folders = ["/lib64", "/lib", "/usr/lib64", "/usr/lib"];
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let is_loader = |name: &str| name.starts_with("ld-linux") || name.starts_with("ld-musl");
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
        let found = parse(text);
        assert_eq!(found, [("254:0".to_owned(), "/".into()), ("0:23".to_owned(), "/tmp dir".into())]);
    }

    #[test]
    fn the_root_of_this_machine_is_watched_and_its_loader_known() {
        assert!(mount_points().iter().any(|(_, point)| point == std::path::Path::new("/")));
        assert!(!loaders().is_empty());
    }
}
