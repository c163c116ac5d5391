//! Locations of the code in a file, and of the loader's stubs, which lead to functions of other
//! files.

use std::collections::HashMap;
use std::path::Path;

use heapr_unwind::covered_ranges;
use object::Endianness;
use object::elf::{FileHeader64, Machine, PF_X, PT_LOAD, SHT_DYNSYM};
use object::read::ReadCache;
use object::read::elf::{
    FileHeader as _, ProgramHeader as _, Rela as _, SectionHeader as _, SectionTable, Sym as _,
};

use crate::arch;
use crate::elf_facts::open_regular;

/// Locations of code in a 64-bit file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodePlaces {
    /// Number of the processor in the file's header.
    machine: u16,
    /// Address, size in bytes and file offset of the executable segments.
    segments: Vec<(u64, u64, u64)>,
    /// Start and end of the stub sections.
    stubs: Vec<(u64, u64)>,
    /// Ranges with unwind rules: see [`Self::unwound`].
    unwound: Vec<(u64, u64)>,
    /// Imported functions by the address of their word: see [`Self::import_at`].
    imports: HashMap<u64, String>,
}

/// Largest number of ranges with unwind rules that are stored.
const UNWOUND_MAX: usize = 1 << 20;

impl CodePlaces {
    /// Reads the headers of a file. `None`: it is not a 64-bit ELF file.
    #[must_use]
    pub fn read(file: &Path) -> Option<Self> {
        let data = &ReadCache::new(open_regular(file)?);
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let is_code = |segment: &&object::elf::ProgramHeader64<Endianness>| {
            segment.p_type(endian) == PT_LOAD && segment.p_flags(endian).contains(PF_X)
        };
        let segments = header
            .program_headers(endian, data)
            .ok()?
            .iter()
            .filter(is_code)
            .map(|segment| (segment.p_vaddr(endian), segment.p_filesz(endian), segment.p_offset(endian)))
            .collect();
        let sections = header.sections(endian, data).ok()?;
        let stubs = sections
            .iter()
            .filter(|section| {
                sections.section_name(endian, section).is_ok_and(|name| name.starts_with(b".plt"))
            })
            .map(|section| {
                let start = section.sh_addr(endian);
                (start, start.saturating_add(section.sh_size(endian)))
            })
            .collect();
        let unwound = sections
            .section_by_name(endian, b".eh_frame")
            .and_then(|(_, section)| {
                let bytes = section.data(endian, data).ok()?;
                Some(covered_ranges(bytes, section.sh_addr(endian), UNWOUND_MAX))
            })
            .unwrap_or_default();
        let machine = header.e_machine(endian);
        let imports = imports(endian, machine, data, &sections).unwrap_or_default();
        Some(Self { machine: machine.0, segments, stubs, unwound, imports })
    }

    /// Number of the processor in the file's header.
    #[must_use]
    pub fn machine(&self) -> u16 {
        self.machine
    }

    /// Name of the other file's function whose address the loader stores in this word.
    #[must_use]
    pub fn import_at(&self, svma: u64) -> Option<&str> {
        self.imports.get(&svma).map(String::as_str)
    }

    /// Start and end of ranges with unwind rules: functions, or parts of functions, with or without
    /// names.
    #[must_use]
    pub fn unwound(&self) -> &[(u64, u64)] {
        &self.unwound
    }

    /// File offset of the code at an address.
    #[must_use]
    pub fn file_offset(&self, svma: u64) -> Option<u64> {
        let in_segment = |&&(start, bytes, _): &&(u64, u64, u64)| svma.wrapping_sub(start) < bytes;
        let &(start, _, offset) = self.segments.iter().find(in_segment)?;
        offset.checked_add(svma - start)
    }

    /// True if the code at an address is a stub that leads to another file.
    #[must_use]
    pub fn is_loaders_stub(&self, svma: u64) -> bool {
        self.stubs.iter().any(|&(start, end)| (start..end).contains(&svma))
    }
}

/// Words that the loader fills with addresses of symbols, and the symbols' names. Untrusted, and
/// bounded by the file.
fn imports<'d>(
    endian: Endianness,
    machine: Machine,
    data: &'d ReadCache<std::fs::File>,
    sections: &SectionTable<'d, FileHeader64<Endianness>, &'d ReadCache<std::fs::File>>,
) -> Option<HashMap<u64, String>> {
    let symbols = sections.symbols(endian, data, SHT_DYNSYM).ok()?;
    let mut found = HashMap::new();
    for section in sections.iter() {
        let Ok(Some((relocations, _))) = section.rela(endian, data) else { continue };
        for relocation in relocations {
            let kind = relocation.r_type(endian, false);
            let symbol = relocation.symbol(endian, false);
            if !arch::SLOT_RELOCATIONS.contains(&(machine, kind)) {
                continue;
            }
            let name =
                symbol.and_then(|index| symbols.symbol(index).ok()?.name(endian, symbols.strings()).ok());
            if let Some(name) = name {
                found.insert(relocation.r_offset(endian), String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Some(found)
}
