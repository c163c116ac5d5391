//! Memory whose pages a program supplies on access: through userfaultfd, or as the server of a
//! mapped file (FUSE).
//!
//! A thread that reads a missing page waits for that program. It waits for ever if the program is
//! stopped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::first_thread::folder;
use crate::mappings::parse_line;
use crate::mounts;
use crate::whole_file;

/// Start and exclusive end.
type Range = (u64, u64);

/// Served memory of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedMemory {
    /// Ranges registered with userfaultfd, ordered by address.
    pub registered: Vec<Range>,
    /// Bytes of [`Self::registered`] that are in memory or swapped out.
    pub registered_there_bytes: u64,
    /// Mapped files of file systems that the process itself may serve.
    pub files: Vec<Range>,
    /// Whether the process has a userfaultfd, so that it may register any of its memory soon.
    pub has_userfaultfd: bool,
    /// Whether a userfaultfd of the process reports forks: a fork then waits until the report is
    /// read.
    pub forks_wait: bool,
}

impl ServedMemory {
    /// Reads the served memory of a process. With `is_thorough`, also finds memory whose
    /// userfaultfd the process has given to another one; that takes the kernel as long as counting
    /// its pages.
    pub fn of(pid: u32, is_thorough: bool) -> Self {
        let mut found = Self::default();
        let is_server = found.look_at_descriptors(pid);
        if found.has_userfaultfd || is_thorough {
            let text = fs::File::open(folder(pid).join("smaps"));
            let _ = text.map(|text| found.look_at_flags(BufReader::with_capacity(256 << 10, text)));
        }
        if is_server {
            let mounted = fs::read(folder(pid).join("mountinfo")).unwrap_or_default();
            let maps = fs::read(folder(pid).join("maps")).unwrap_or_default();
            found.files = files_of(&maps, &fuse_devices(&mounted));
        }
        found
    }

    /// True if the process has, or may soon have, served memory.
    pub fn is_any(&self) -> bool {
        self.has_userfaultfd || !self.registered.is_empty() || !self.files.is_empty()
    }

    /// True if an address lies in a served file mapping.
    pub fn is_of_file(&self, address_avma: u64) -> bool {
        holds(&self.files, address_avma)
    }

    /// True if an address lies in served memory.
    pub fn holds(&self, address_avma: u64) -> bool {
        holds(&self.registered, address_avma) || holds(&self.files, address_avma)
    }

    /// Reads the descriptors; returns whether the process may serve file systems.
    fn look_at_descriptors(&mut self, pid: u32) -> bool {
        let place = folder(pid);
        let mut is_server = false;
        for entry in fs::read_dir(place.join("fd")).into_iter().flatten().flatten() {
            let Ok(target) = fs::read_link(entry.path()) else { continue };
            is_server |= target == Path::new("/dev/fuse");
            if target.as_os_str().as_bytes() == b"anon_inode:[userfaultfd]" {
                self.has_userfaultfd = true;
                let facts = whole_file::text(place.join("fdinfo").join(entry.file_name()));
                self.forks_wait |= facts.map_or(true, |facts| asks_for_forks(&facts));
            }
        }
        is_server
    }

    fn look_at_flags(&mut self, text: impl BufRead) {
        let (mut range, mut there_bytes) = (None, 0);
        for line in text.split(b'\n').map_while(Result::ok) {
            if let Some(flags) = line.strip_prefix(b"VmFlags:") {
                let is_registered = |flag: &[u8]| matches!(flag, b"um" | b"uw" | b"ui");
                let is_any = flags.split(|&byte| byte == b' ').any(is_registered);
                if let Some(range) = range.take().filter(|_| is_any) {
                    self.registered.push(range);
                    self.registered_there_bytes += there_bytes;
                }
            } else if let Some(bytes) = kibibytes(&line, b"Rss:").or_else(|| kibibytes(&line, b"Swap:")) {
                there_bytes += bytes;
            } else if !line.first().is_some_and(u8::is_ascii_uppercase) {
                let mapping = parse_line(&line);
                range = mapping.map(|mapping| (mapping.start_avma, mapping.end_avma));
                there_bytes = 0;
            }
        }
    }
}

fn holds(ranges: &[Range], address_avma: u64) -> bool {
    let behind = ranges.partition_point(|&(_, end_avma)| end_avma <= address_avma);
    ranges.get(behind).is_some_and(|&(start_avma, _)| start_avma <= address_avma)
}

/// Parses `Rss:      12 kB`.
fn kibibytes(line: &[u8], name: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(line.strip_prefix(name)?).ok()?;
    text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// True if `API: aa:FEATURES:…` includes `UFFD_FEATURE_EVENT_FORK`, or is missing.
fn asks_for_forks(facts: &str) -> bool {
    const EVENT_FORK: u64 = 1 << 1;
    let features = facts.lines().find_map(|line| line.strip_prefix("API:")?.split(':').nth(1));
    let features = features.and_then(|features| u64::from_str_radix(features, 16).ok());
    features.is_none_or(|features| features & EVENT_FORK != 0)
}

/// `major:minor` of the file systems that a program serves.
fn fuse_devices(mounted: &[u8]) -> Vec<String> {
    let is_served = |kind: &str| kind == "fuse" || kind == "fuseblk" || kind.starts_with("fuse.");
    let served = mounts::parse(mounted).into_iter().filter(|mount| is_served(&mount.filesystem));
    served.map(|mount| mount.device).collect()
}

/// Mappings of files on these devices. In `maps` the device numbers are hexadecimal with two
/// digits.
fn files_of(maps: &[u8], devices: &[String]) -> Vec<Range> {
    let number = |device: &str, radix: u32| {
        let (major, minor) = device.split_once(':')?;
        Some((u32::from_str_radix(major, radix).ok()?, u32::from_str_radix(minor, radix).ok()?))
    };
    let devices: Vec<(u32, u32)> = devices.iter().filter_map(|device| number(device, 10)).collect();
    let range = |line: &[u8]| {
        let text = String::from_utf8_lossy(line);
        let device = number(text.split_ascii_whitespace().nth(3)?, 16)?;
        let mapping = parse_line(line).filter(|_| devices.contains(&device))?;
        Some((mapping.start_avma, mapping.end_avma))
    };
    maps.split(|&byte| byte == b'\n').filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_ranges_are_told_by_their_flags() {
        let text = b"1000-2000 rw-p 00000000 00:00 0\nRss: 4 kB\nVmFlags: rd wr mr \n\
            2000-4000 rw-p 00000000 00:00 0\nRss: 4 kB\nSwap: 4 kB\nSwapPss: 4 kB\nVmFlags: rd wr um ac\n\
            4000-5000 rw-p 00000000 00:00 0\nVmFlags: rd uw\n5000-6000 rw-s 00000000 00:01 9 /memfd:x\n\
            VmFlags: ui\nVmFlags: um\nbroken";
        let mut found = ServedMemory::default();
        found.look_at_flags(text.as_slice());
        assert_eq!(found.registered, [(0x2000, 0x4000), (0x4000, 0x5000), (0x5000, 0x6000)]);
        assert_eq!(found.registered_there_bytes, 8192);
        assert!(found.holds(0x5fff) && !found.holds(0x6000) && !found.holds(0x1fff));
    }

    #[test]
    fn who_is_told_of_forks_is_known_by_the_features() {
        assert!(!asks_for_forks("pending:\t0\nAPI:\taa:80000401:80000000000001ff\n"));
        assert!(asks_for_forks("API:\taa:2:1ff\n") && asks_for_forks("pending:\t0\n"));
    }

    #[test]
    fn mapped_files_belong_to_the_file_system_that_is_served() {
        let mounted = b"25 22 0:45 / /mnt rw - fuse.x x rw\n26 22 8:1 / / rw - ext4 /dev/sda1 rw\n";
        let maps = b"1000-2000 r--p 00000000 08:01 5 /bin/x\n3000-5000 rw-s 00000000 00:2d 1 /mnt/f\n";
        assert_eq!(files_of(maps, &fuse_devices(mounted)), [(0x3000, 0x5000)]);
    }

    #[test]
    fn this_process_serves_nothing() {
        assert!(!ServedMemory::of(std::process::id(), true).is_any());
    }
}
