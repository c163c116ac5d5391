//! Functions and variables of a statically linked program, from the symbol table in its file,
//! because no loader has one in memory. Untrusted: every count is bounded.

use std::collections::HashMap;
use std::fs::File;

use object::elf::{self, FileHeader64, Sym64, SymbolType};
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};
use object::{LittleEndian, ReadCache};

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
        let data = ReadCache::new(file);
        let header = FileHeader64::<LittleEndian>::parse(&data).ok()?;
        let sections = header.sections(LittleEndian, &data).ok()?;
        let table = sections.iter().find(|section| section.sh_type(LittleEndian) == elf::SHT_SYMTAB)?;
        let strings = sections.section(table.link(LittleEndian)).ok()?;
        if [table, strings].iter().any(|section| section.sh_size(LittleEndian) > TABLE_BYTES_MAX) {
            return None;
        }
        let symbols = table.data_as_array(LittleEndian, &data).ok()?;
        Some(Self::of_tables(symbols, strings.data(LittleEndian, &data).ok()?))
    }

    fn of_tables(symbols: &[Sym64<LittleEndian>], strings: &[u8]) -> Self {
        // musl's assembler files give their functions no kind.
        const KINDS: [SymbolType; 4] = [elf::STT_NOTYPE, elf::STT_OBJECT, elf::STT_FUNC, elf::STT_GNU_IFUNC];
        let mut by_name: HashMap<String, StaticSymbol> = HashMap::new();
        for symbol in symbols {
            let (kind, svma) = (symbol.st_type(), symbol.st_value(LittleEndian));
            if symbol.is_undefined(LittleEndian) || svma == 0 || !KINDS.contains(&kind) {
                continue;
            }
            let name = strings.get(symbol.st_name(LittleEndian) as usize..).unwrap_or_default();
            let name = name.get(..name.len().min(NAME_BYTES_MAX + 1)).unwrap_or_default();
            let Some(end) = name.iter().position(|&byte| byte == 0).filter(|&end| end > 0) else { continue };
            let Ok(name) = std::str::from_utf8(&name[..end]) else { continue };
            let is_global = symbol.st_bind() != elf::STB_LOCAL;
            let size_bytes = symbol.st_size(LittleEndian);
            let found = StaticSymbol { svma, size_bytes, is_indirect: kind == elf::STT_GNU_IFUNC, is_global };
            let known = by_name.entry(name.to_owned()).or_insert(found);
            if is_global && !known.is_global {
                *known = found;
            }
        }
        Self { by_name }
    }
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
        let table: &[Sym64<LittleEndian>] = object::pod::slice_from_all_bytes(&table).unwrap();
        let symbols = StaticSymbols::of_tables(table, strings);
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
