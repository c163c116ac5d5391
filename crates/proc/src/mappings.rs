//! `/proc/PID/maps`: mappings of a process.

use memchr::memmem;

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
    Ok(text.split(|&byte| byte == b'\n').filter_map(parse_line).collect())
}

/// Reads the mappings of a process whose lines in `/proc/PID/maps` contain a text, ordered by
/// address. The other lines are not parsed.
///
/// # Errors
/// Returns an error if the process is gone or may not be read.
pub fn read_named(pid: u32, text: &str) -> std::io::Result<Vec<Mapping>> {
    let list = whole_file::read(folder(pid).join("maps"))?;
    let has_text = |bytes: &[u8]| memmem::find(bytes, text.as_bytes()).is_some();
    if !has_text(&list) {
        return Ok(Vec::new());
    }
    let lines = list.split(|&byte| byte == b'\n').filter(|line| has_text(line));
    Ok(lines.filter_map(parse_line).collect())
}

/// `start-end perms offset device inode   name`.
pub(crate) fn parse_line(line: &[u8]) -> Option<Mapping> {
    let (start_avma, line) = number::<16>(line, b'-')?;
    let (end_avma, line) = number::<16>(line, b' ')?;
    let (permissions, line) = line.split_at_checked(4)?;
    let (file_off, line) = number::<16>(line.strip_prefix(b" ")?, b' ')?;
    let device = line.iter().position(|&byte| byte == b' ')?;
    let line = &line[device + 1..];
    // The kernel writes a blank behind the inode, with or without a name.
    let (inode, name) = match line.contains(&b' ') {
        true => number::<10>(line, b' ')?,
        false => (std::str::from_utf8(line).ok()?.parse().ok()?, &[][..]),
    };
    let name = &name[name.iter().position(|&byte| byte != b' ').unwrap_or(name.len())..];
    Some(Mapping {
        start_avma,
        end_avma,
        is_readable: permissions[0] == b'r',
        is_writable: permissions[1] == b'w',
        is_executable: permissions[2] == b'x',
        is_shared: permissions[3] == b's',
        file_off,
        inode,
        name: String::from_utf8_lossy(name).into_owned(),
    })
}

/// The number that a line begins with, and what follows the byte behind it.
fn number<const RADIX: u8>(line: &[u8], end: u8) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (at, &byte) in line.iter().enumerate() {
        if byte == end && at > 0 {
            return Some((value, &line[at + 1..]));
        }
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' if RADIX == 16 => byte - b'a' + 10,
            _ => return None,
        };
        value = value.checked_mul(u64::from(RADIX))?.checked_add(u64::from(digit))?;
    }
    None
}

/// The mapping that holds an address, from a list by address.
pub fn find(mappings: &[Mapping], address_avma: u64) -> Option<&Mapping> {
    let behind = mappings.partition_point(|mapping| mapping.end_avma <= address_avma);
    mappings.get(behind).filter(|mapping| mapping.contains(address_avma))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_spaces_in_its_path_is_read() {
        let line = b"7f00-8000 rw-s 00002000 00:01 1234                       /tmp/a b (deleted)";
        let parsed = parse_line(line).unwrap();
        assert_eq!((parsed.start_avma, parsed.end_avma, parsed.file_off), (0x7f00, 0x8000, 0x2000));
        assert!(parsed.is_readable && parsed.is_writable && !parsed.is_executable && parsed.is_shared);
        assert_eq!((parsed.inode, parsed.name.as_str()), (1234, "/tmp/a b (deleted)"));
    }

    #[test]
    fn a_line_without_a_name_is_read_and_one_that_is_none_is_not() {
        for line in ["1000-2000 r-xp 00000000 00:00 0 ", "1000-2000 r-xp 00000000 00:00 0"] {
            let parsed = parse_line(line.as_bytes()).unwrap();
            assert_eq!((parsed.end_avma, parsed.inode, parsed.name.as_str()), (0x2000, 0, ""));
            assert!(parsed.is_executable && !parsed.is_shared);
        }
        let last = "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";
        assert_eq!(parse_line(last.as_bytes()).unwrap().name, "[vsyscall]");
        for other in
            ["", "Size: 4 kB", "-1000 r-xp 0 0:0 0 ", "1000-2000", "1000-2000 r", "1000-2000 r-xp 00 "]
        {
            assert_eq!(parse_line(other.as_bytes()), None, "{other}");
        }
        let too_large = "10000000000000000-2 r-xp 00000000 00:00 0 ";
        assert_eq!(parse_line(too_large.as_bytes()), None);
    }
}
