//! Sections of a file with constants, which contain most of a program's texts.

use std::path::Path;

use object::Endianness;
use object::elf::{FileHeader64, SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS};
use object::read::ReadCache;
use object::read::elf::{FileHeader as _, SectionHeader as _};

use crate::elf_facts::open_regular;

/// Loaded sections without code and without texts of the program.
const WITHOUT_TEXTS: [&[u8]; 4] = [b".eh_frame", b".eh_frame_hdr", b".gcc_except_table", b".interp"];

/// Offset and size in bytes of the sections of a 64-bit ELF file that may hold texts of the
/// program. `None`: the file lists no sections. Untrusted: a range may lie behind the file's end.
#[must_use]
pub fn constant_sections(file: &Path) -> Option<Vec<(u64, u64)>> {
    let data = &ReadCache::new(open_regular(file)?);
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let loaded = sections.iter().filter(|section| {
        let flags = section.sh_flags(endian);
        section.sh_type(endian) == SHT_PROGBITS && flags.contains(SHF_ALLOC)
    });
    let loaded: Vec<_> = loaded.collect();
    let with_texts = loaded.iter().filter(|section| {
        let is_without =
            sections.section_name(endian, section).is_ok_and(|name| WITHOUT_TEXTS.contains(&name));
        !section.sh_flags(endian).contains(SHF_EXECINSTR) && !is_without
    });
    let ranges = with_texts.map(|section| (section.sh_offset(endian), section.sh_size(endian))).collect();
    (!loaded.is_empty()).then_some(ranges)
}
