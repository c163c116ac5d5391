//! Functions of objects that a program has created at run time and registered for debuggers (GDB's
//! JIT interface).

use std::path::Path;

use memchr::memmem;
use object::elf::{FileHeader64, SHN_UNDEF, SHT_SYMTAB, gnu_hash};
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _, VersionTable};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

use crate::demangle::demangle;
use crate::made_code::MadeFunction;
use crate::mapped_file::map;

/// Variable with the list of a program's registered objects.
const JIT_DESCRIPTOR: &[u8] = b"__jit_debug_descriptor";

type Header = FileHeader64<Endianness>;

/// Functions of an untrusted object in memory. Their addresses come from its sections or, in a
/// linked object, from its symbols.
#[must_use]
pub fn read_made_object(bytes: &[u8]) -> Vec<MadeFunction> {
    let Ok(file) = object::File::parse(bytes) else { return Vec::new() };
    let is_linked = file.kind() != object::ObjectKind::Relocatable;
    let mut functions = Vec::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_function =
            symbol.is_definition() && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Label);
        let (Ok(name), true) = (symbol.name(), is_function) else { continue };
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let Some(section) = section else { continue };
        let base = if is_linked { 0 } else { section.address() };
        let start_avma = base.wrapping_add(symbol.address());
        let section_end = section.address().saturating_add(section.size());
        let end = match symbol.size() {
            0 => section_end,
            size => start_avma.saturating_add(size),
        };
        if name.is_empty() || start_avma == 0 || section.address() == 0 {
            // The section was never loaded.
            continue;
        }
        let name = demangle(name).to_string();
        functions.push(MadeFunction { start_avma, end_avma: end, name, ..MadeFunction::default() });
    }
    // A function of unknown size ends where the next one begins.
    functions.sort_by_key(|function| function.start_avma);
    for place in 1..functions.len() {
        let next = functions[place].start_avma;
        let function = &mut functions[place - 1];
        if function.start_avma < next {
            function.end_avma = function.end_avma.min(next);
        }
    }
    functions.dedup_by(|second, first| second.start_avma == first.start_avma && second.name == first.name);
    functions
}

/// Address of the variable with the list of registered objects, if a module's file has it. Searched
/// in the hash table of exported symbols, then among all symbols.
#[must_use]
pub fn jit_descriptor_svma(path: &Path) -> Option<u64> {
    let bytes = map(path)?;
    let data = &*bytes;
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    if let Ok(Some((table, link))) = sections.gnu_hash(endian, data) {
        let symbols = sections.symbol_table_by_index(endian, data, link).ok()?;
        let versions = VersionTable::default();
        let found = table.find(endian, JIT_DESCRIPTOR, gnu_hash(JIT_DESCRIPTOR), None, &symbols, &versions);
        if let Some((_, symbol)) = found
            && symbol.st_shndx(endian) != SHN_UNDEF
        {
            return Some(symbol.st_value(endian));
        }
    }
    let symbols = sections.symbols(endian, data, SHT_SYMTAB).ok()?;
    let names = sections.section(symbols.string_section()).ok()?.data(endian, data).ok()?;
    // Few files have the variable: a search of all names in one piece avoids a scan of the symbols.
    memmem::find(names, JIT_DESCRIPTOR)?;
    let is_wanted = |symbol: &&object::elf::Sym64<Endianness>| {
        symbol.st_shndx(endian) != SHN_UNDEF && symbol.name(endian, symbols.strings()) == Ok(JIT_DESCRIPTOR)
    };
    symbols.symbols().iter().find(is_wanted).map(|symbol| symbol.st_value(endian))
}
