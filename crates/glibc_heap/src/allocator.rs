//! Checks that the program's malloc is glibc's. If another module defines `malloc`, the heap that
//! this crate walks is not the program's.

use std::fs::File;

use object::elf::Sym64;
use object::read::elf::{ElfFile64, SectionHeader as _, Sym as _};
use object::{Endianness, ReadCache, StringTable};

use super::error::Error;
use super::heap_memory::HeapMemory;
use super::mappings;
use heapr_proc::Mapping;

/// Refuses processes in which a module other than libc and the loader defines `malloc`.
pub(super) fn check_is_glibc(memory: &impl HeapMemory, mappings: &[Mapping]) -> Result<(), Error> {
    let mut seen: Vec<&str> = Vec::new();
    for mapping in mappings.iter().filter(|mapping| mapping.is_executable && mapping.inode != 0) {
        let name = mappings::file_name(mapping);
        // The loader of 2.31 exports a malloc that it uses only until libc is loaded. The agent's
        // malloc passes calls on.
        let is_harmless =
            name.starts_with("libc.so") || name.starts_with("libc-2.") || name.starts_with("ld-");
        if is_harmless || name.contains("heapr") || seen.contains(&mapping.name.as_str()) {
            continue;
        }
        seen.push(&mapping.name);
        if defines_malloc(memory, &mapping.name) {
            return Err(Error::OtherAllocator { by: name.to_owned() });
        }
    }
    Ok(())
}

/// Whether the file's dynamic symbols define `malloc`. A file that cannot be read counts as one
/// without.
fn defines_malloc(memory: &impl HeapMemory, path: &str) -> bool {
    memory.open(path).is_ok_and(|file| has_definition(file, b"malloc").unwrap_or(false))
}

fn has_definition(file: File, name: &[u8]) -> object::read::Result<bool> {
    let cache = ReadCache::new(file);
    let object = ElfFile64::<Endianness, _>::parse(&cache)?;
    let (endian, symbols) = (object.endian(), object.elf_dynamic_symbol_table());
    // The names are read in one piece: Node has 75,000, and the cache would read each by itself.
    let names = object.elf_section_table().section(symbols.string_section())?.data(endian, &cache)?;
    let names = StringTable::new(names, 0, names.len() as u64);
    let is_it = |symbol: &Sym64<Endianness>| {
        symbol.is_definition(endian, names) && symbol.name(endian, names) == Ok(name)
    };
    Ok(symbols.iter().any(is_it))
}
