//! The target's mappings, as /proc/PID/maps lists them.

use super::error::Error;

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// First byte.
    pub start_avma: u64,
    /// First byte behind it.
    pub end_avma: u64,
    /// May be read.
    pub is_readable: bool,
    /// May be written.
    pub is_writable: bool,
    /// May be executed.
    pub is_executable: bool,
    /// Shared with other processes.
    pub is_shared: bool,
    /// Of the file; 0 where there is none.
    pub inode: u64,
    /// The file's path or the kernel's name; empty for most anonymous memory.
    pub name: String,
}

impl Mapping {
    /// Whether it is private memory without a file that the program may write.
    pub(super) fn is_private_anonymous(&self) -> bool {
        self.inode == 0
            && !self.is_shared
            && self.is_readable
            && self.is_writable
            && (self.name.is_empty() || self.name.starts_with("[anon:"))
    }

    /// Its size.
    pub(super) fn size_bytes(&self) -> u64 {
        self.end_avma - self.start_avma
    }

    /// The last part of the file's path, without the kernel's note on deleted files.
    pub(super) fn file_name(&self) -> &str {
        let path = self.name.strip_suffix(" (deleted)").unwrap_or(&self.name);
        path.rsplit('/').next().unwrap_or(path)
    }
}

/// The mapping of `mappings` (sorted) that holds `address_avma`.
pub(super) fn holding(mappings: &[Mapping], address_avma: u64) -> Option<&Mapping> {
    let behind = mappings.partition_point(|mapping| mapping.start_avma <= address_avma);
    mappings[..behind].last().filter(|mapping| address_avma < mapping.end_avma)
}

/// Parses the text of /proc/PID/maps.
pub(super) fn parse(text: &str) -> Result<Vec<Mapping>, Error> {
    let mut mappings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let mapping = parse_line(line)
            .ok_or_else(|| Error::MappingLine { line: index + 1, text: line.chars().take(80).collect() })?;
        mappings.push(mapping);
    }
    mappings.sort_by_key(|mapping| mapping.start_avma);
    Ok(mappings)
}

/// `start-end perms offset device inode   name`.
fn parse_line(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        rest = rest.trim_start_matches(' ');
        let (word, behind) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = behind;
        word
    };
    let (start, end) = field().split_once('-')?;
    let permissions = field().as_bytes().to_vec();
    let (_offset, _device) = (field(), field());
    let inode = field().parse().ok()?;
    let name = rest.trim_start_matches(' ').to_owned();
    let mapping = Mapping {
        start_avma: u64::from_str_radix(start, 16).ok()?,
        end_avma: u64::from_str_radix(end, 16).ok()?,
        is_readable: permissions.first() == Some(&b'r'),
        is_writable: permissions.get(1) == Some(&b'w'),
        is_executable: permissions.get(2) == Some(&b'x'),
        is_shared: permissions.get(3) == Some(&b's'),
        inode,
        name,
    };
    (mapping.start_avma < mapping.end_avma).then_some(mapping)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_spaces_and_flags_are_read() {
        let text = "\
55d0a1c00000-55d0a1c21000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000001000 r-xs 00002000 08:01 77   /opt/a b/libx.so (deleted)
7f0000002000-7f0000003000 rw-p 00000000 00:00 0 
";
        let mappings = parse(text).unwrap();
        assert_eq!(mappings[0].name, "[heap]");
        assert!(!mappings[0].is_private_anonymous());
        assert_eq!((mappings[1].file_name(), mappings[1].is_shared), ("libx.so", true));
        assert!(mappings[2].is_private_anonymous());
        assert_eq!(holding(&mappings, 0x7f0000002fff), Some(&mappings[2]));
        assert_eq!(holding(&mappings, 0x7f0000003000), None);
    }

    #[test]
    fn a_line_that_is_none_is_refused_with_its_number() {
        let text = "55d0a1c00000-55d0a1c21000 rw-p 00000000 00:00 0 [heap]\nnonsense\n";
        assert!(matches!(parse(text), Err(Error::MappingLine { line: 2, .. })));
    }
}
