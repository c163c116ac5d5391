//! `/proc/self/mountinfo`: mounted filesystems.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// `major:minor` of the filesystem.
    pub device: String,
    /// The part of the filesystem that is mounted.
    pub root: PathBuf,
    /// Mount point.
    pub point: PathBuf,
    /// Options of the mount, with commas.
    pub options: String,
    /// Type of the filesystem.
    pub filesystem: String,
    /// Options of the filesystem, with commas.
    pub filesystem_options: String,
}

/// Reads all mounts; empty without `/proc`.
pub fn mounts() -> Vec<Mount> {
    parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default())
}

/// Parses the file's content.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&byte| byte == b'\n').filter_map(parse_line).collect()
}

/// Parses `36 35 98:0 /root /point rw,noexec - ext4 /dev/root rw`, with optional fields before the
/// dash.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let dash = words.iter().position(|word| *word == b"-")?;
    let text = |place: usize| Some(String::from_utf8_lossy(words.get(place)?).into_owned());
    let path = |place: usize| Some(PathBuf::from(OsString::from_vec(unescaped(words.get(place)?))));
    Some(Mount {
        device: text(2)?,
        root: path(3)?,
        point: path(4)?,
        options: text(5)?,
        filesystem: text(dash + 1)?,
        filesystem_options: text(dash + 3).unwrap_or_default(),
    })
}

/// Decodes a path: the kernel writes blanks and some other characters as a backslash and three
/// octal digits.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_optional_fields_and_an_escaped_path_is_read() {
        let text =
            b"25 22 0:23 /a /tmp\\040dir rw,nosuid shared:1 master:2 - tmpfs tmp rw,size=4k\nbroken\n\n";
        let found = parse(text);
        let [mount] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((mount.device.as_str(), mount.filesystem.as_str()), ("0:23", "tmpfs"));
        assert_eq!((mount.root.as_path(), mount.point.as_path()), ("/a".as_ref(), "/tmp dir".as_ref()));
        assert_eq!((mount.options.as_str(), mount.filesystem_options.as_str()), ("rw,nosuid", "rw,size=4k"));
    }

    #[test]
    fn this_machine_has_a_root() {
        assert!(mounts().iter().any(|mount| mount.point == std::path::Path::new("/")));
    }
}
