//! `/proc/PID/maps`: mappings of a process.

use crate::first_thread::folder;
use crate::whole_file;

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start_avma: u64,
    /// Exclusive end.
    pub end_avma: u64,
    /// Whether the mapping is readable.
    pub is_readable: bool,
    /// Whether the mapping is writable.
    pub is_writable: bool,
    /// Whether the mapping is executable.
    pub is_executable: bool,
    /// Whether the mapping is shared with other processes.
    pub is_shared: bool,
    /// Offset in the file.
    pub file_off: u64,
    /// Inode; 0 for anonymous memory.
    pub inode: u64,
    /// Path, `[heap]`, or empty.
    pub name: String,
}

impl Mapping {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.end_avma.saturating_sub(self.start_avma)
    }

    /// True if the mapping contains an address.
    pub fn contains(&self, address_avma: u64) -> bool {
        (self.start_avma..self.end_avma).contains(&address_avma)
    }
}

/// Reads the mappings of a process, ordered by address.
///
/// # Errors
/// Returns an error if the process is gone or may not be read.
pub fn read(pid: u32) -> std::io::Result<Vec<Mapping>> {
    let text = whole_file::read(folder(pid).join("maps"))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(parse_line).collect())
}

/// Parses `start-end perms offset device inode   name`.
pub(crate) fn parse_line(line: &str) -> Option<Mapping> {
    let mut parts = line.splitn(6, ' ');
    let (start, end) = parts.next()?.split_once('-')?;
    let permissions = parts.next()?.as_bytes();
    let file_off = u64::from_str_radix(parts.next()?, 16).ok()?;
    let _device = parts.next()?;
    let inode = parts.next()?.parse().ok()?;
    let name = parts.next().unwrap_or_default().trim_start().to_owned();
    Some(Mapping {
        start_avma: u64::from_str_radix(start, 16).ok()?,
        end_avma: u64::from_str_radix(end, 16).ok()?,
        is_readable: permissions.first() == Some(&b'r'),
        is_writable: permissions.get(1) == Some(&b'w'),
        is_executable: permissions.get(2) == Some(&b'x'),
        is_shared: permissions.get(3) == Some(&b's'),
        file_off,
        inode,
        name,
    })
}

/// Finds the mapping that contains an address, in a list ordered by address.
pub fn find(mappings: &[Mapping], address_avma: u64) -> Option<&Mapping> {
    let behind = mappings.partition_point(|mapping| mapping.end_avma <= address_avma);
    mappings.get(behind).filter(|mapping| mapping.contains(address_avma))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_spaces_in_its_path_is_read() {
        let line = "7f00-8000 rw-s 00002000 00:01 1234                       /tmp/a b (deleted)";
        let parsed = parse_line(line).unwrap();
        assert_eq!((parsed.start_avma, parsed.end_avma, parsed.file_off), (0x7f00, 0x8000, 0x2000));
        assert!(parsed.is_readable && parsed.is_writable && !parsed.is_executable && parsed.is_shared);
        assert_eq!((parsed.inode, parsed.name.as_str()), (1234, "/tmp/a b (deleted)"));
    }
}
