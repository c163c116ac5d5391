//! Functions and variables of a statically linked program, from the symbol table in its file,
//! because no loader has one in memory. Untrusted: every count is bounded.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// A symbol of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StaticSymbol {
    pub(crate) svma: u64,
    pub(crate) size_bytes: u64,
    /// Whether the symbol is a resolver function, which returns the real address.
    pub(crate) is_indirect: bool,
    /// Whether the symbol is visible to all source files; others of one name belong to a single
    /// file.
    is_global: bool,
}

/// All symbols of a file by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StaticSymbols {
    by_name: HashMap<String, StaticSymbol>,
}

/// Largest table in bytes that is read.
const TABLE_BYTES_MAX: u64 = 512 << 20;
/// Longest name in bytes that is stored; requested names are shorter.
const NAME_BYTES_MAX: usize = 48;

impl StaticSymbols {
    /// Reads the symbol table of a program's file; empty if it is stripped.
    pub(crate) fn of_process(pid: u32) -> Self {
        let path = heapr_proc::folder(pid).join("exe");
        File::open(path).ok().and_then(|file| Self::read(&file)).unwrap_or_default()
    }

    pub(crate) fn get(&self, name: &str) -> Option<StaticSymbol> {
        self.by_name.get(name).copied()
    }

    fn read(file: &File) -> Option<Self> {
        const SECTION_BYTES: usize = 64;
        const SHT_SYMTAB: u32 = 2;
        let mut head = [0; 64];
        file.read_exact_at(&mut head, 0).ok()?;
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (sections_off, count) = (word(&head, 40)?, usize::from(half(&head, 60)?));
        let mut sections = vec![0; count * SECTION_BYTES];
        file.read_exact_at(&mut sections, sections_off).ok()?;
        let section = |number: usize| sections.get(number * SECTION_BYTES..(number + 1) * SECTION_BYTES);
        let content = |section: &[u8]| {
            let (offset, bytes) = (word(section, 24)?, word(section, 32)?);
            let is_in_file = file.metadata().is_ok_and(|facts| bytes <= facts.len());
            let mut content =
                vec![0; usize::try_from(bytes).ok().filter(|_| is_in_file && bytes <= TABLE_BYTES_MAX)?];
            file.read_exact_at(&mut content, offset).ok()?;
            Some(content)
        };
        let table = (0..count).filter_map(section).find(|section| int(section, 4) == Some(SHT_SYMTAB))?;
        let strings = content(section(int(table, 40)? as usize)?)?;
        Some(Self::of_tables(&content(table)?, &strings))
    }

    fn of_tables(table: &[u8], strings: &[u8]) -> Self {
        const ENTRY_BYTES: usize = 24;
        const OBJECT: u8 = 1;
        const FUNCTION: u8 = 2;
        const INDIRECT: u8 = 10;
        let mut by_name: HashMap<String, StaticSymbol> = HashMap::new();
        for entry in table.chunks_exact(ENTRY_BYTES) {
            let (kind, is_global) = (entry[4] & 15, entry[4] >> 4 != 0);
            let is_defined = half(entry, 6).is_some_and(|section| section != 0);
            let (Some(name), Some(svma), Some(size_bytes)) = (int(entry, 0), word(entry, 8), word(entry, 16))
            else {
                continue;
            };
            // musl's assembler files give their functions no kind.
            if !is_defined || svma == 0 || !matches!(kind, 0 | OBJECT | FUNCTION | INDIRECT) {
                continue;
            }
            let name = strings.get(name as usize..).unwrap_or_default();
            let name = name.get(..name.len().min(NAME_BYTES_MAX + 1)).unwrap_or_default();
            let Some(end) = name.iter().position(|&byte| byte == 0).filter(|&end| end > 0) else { continue };
            let Ok(name) = std::str::from_utf8(&name[..end]) else { continue };
            let found = StaticSymbol { svma, size_bytes, is_indirect: kind == INDIRECT, is_global };
            let known = by_name.entry(name.to_owned()).or_insert(found);
            if is_global && !known.is_global {
                *known = found;
            }
        }
        Self { by_name }
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: u32, info: u8, section: u16, svma: u64) -> Vec<u8> {
        let mut entry = name.to_le_bytes().to_vec();
        entry.extend([info, 0]);
        entry.extend(section.to_le_bytes());
        entry.extend(svma.to_le_bytes());
        entry.extend(16_u64.to_le_bytes());
        entry
    }

    #[test]
    fn a_global_name_counts_before_one_of_a_source_file() {
        let strings = b"\0free\0malloc\0";
        let (local, global) = (0x02, 0x12);
        let table = [
            entry(1, local, 1, 0x100),
            entry(1, global, 1, 0x200),
            entry(1, local, 1, 0x300),
            // An undefined symbol, and a thread-local one.
            entry(6, global, 0, 0x400),
            entry(6, 0x16, 1, 0x500),
            entry(999, global, 1, 0x600),
        ]
        .concat();
        let symbols = StaticSymbols::of_tables(&table, strings);
        assert_eq!(symbols.get("free").map(|symbol| symbol.svma), Some(0x200));
        assert_eq!(symbols.get("malloc"), None);
    }

    #[test]
    fn a_file_cut_anywhere_is_no_failure() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut");
        for bytes in [0, 10, 63, 64, 1000, own.len() / 2, own.len() - 1] {
            std::fs::write(&path, &own[..bytes]).unwrap();
            let _ = StaticSymbols::read(&File::open(&path).unwrap());
        }
        assert!(StaticSymbols::of_process(std::process::id()).get("main").is_some());
    }
}
