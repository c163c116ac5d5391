//! All functions of a module by name. Sources: the file's symbol table, its separate debug file,
//! and `.gnu_debugdata`, which distributions add.

use std::fs::File;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, SectionType};
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};
use object::{Endianness, ReadCache, ReadRef, StringTable};

use crate::debug_file;
use crate::elf_facts::{ElfFacts, open_regular};
use crate::elf_symbols::mini_file;
use crate::{ModuleKey, SymbolOptions};

type Header = FileHeader64<Endianness>;

/// A function in a symbol table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedFunction<'a> {
    /// Mangled name.
    pub name: &'a str,
    /// Start address as in the file.
    pub svma: u64,
    /// Size in bytes; 0 if unknown.
    pub size_bytes: u64,
}

/// Completeness of the visited functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// All functions were visited.
    All,
    /// Only imported and exported functions were visited: the module is stripped.
    Exported {
        /// Build-id that identifies the debug file; may be empty.
        build_id: Vec<u8>,
    },
}

/// Visits the functions of a module's file. `path` is the process's name for it, to find debug
/// files beside it. `None`: it is not a 64-bit ELF file.
pub fn visit_functions(
    file: &Path,
    path: &Path,
    options: &SymbolOptions,
    visit: &mut dyn FnMut(NamedFunction<'_>),
) -> Option<Told> {
    let facts = ElfFacts::read(file)?;
    let cache = ReadCache::new(open_regular(file)?);
    if section(&cache, SHT_SYMTAB, visit).is_some() {
        return Some(Told::All);
    }
    let _ = section(&cache, SHT_DYNSYM, visit);
    if let Some(mini) = mini_file(&cache)
        && section(mini.as_slice(), SHT_SYMTAB, visit).is_some()
    {
        return Some(Told::All);
    }
    if let Some(debug) = separate_debug_file(file, path, &facts.build_id, options)
        && let Some(debug) = File::open(&debug).ok().map(ReadCache::new)
        && section(&debug, SHT_SYMTAB, visit).is_some()
    {
        return Some(Told::All);
    }
    Some(Told::Exported { build_id: facts.build_id })
}

/// True if this machine has a separate debug file for a stripped module with this `build_id`.
#[must_use]
pub fn has_separate_debug_file(file: &Path, path: &Path, build_id: &[u8], options: &SymbolOptions) -> bool {
    separate_debug_file(file, path, build_id, options).is_some()
}

fn separate_debug_file(
    file: &Path,
    path: &Path,
    build_id: &[u8],
    options: &SymbolOptions,
) -> Option<PathBuf> {
    let key = ModuleKey { path: path.to_owned(), build_id: build_id.to_vec() };
    let mut options = options.clone();
    options.files.insert(key.clone(), file.to_owned());
    let found = debug_file::find(&key, &options).ok()?;
    (found.debug != file).then_some(found.debug)
}

/// Visits the functions of a table; `None` if it has no functions.
fn section<'d>(
    data: impl ReadRef<'d>,
    table: SectionType,
    visit: &mut dyn FnMut(NamedFunction<'_>),
) -> Option<()> {
    let header = Header::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let symbols = sections.symbols(endian, data, table).ok()?;
    // The names are read in one piece: see `elf_symbols`.
    let names = sections.section(symbols.string_section()).ok()?.data(endian, data).ok()?;
    let names = StringTable::new(names, 0, names.len() as u64);
    let mut is_any = false;
    for symbol in symbols.symbols() {
        let is_function = symbol.st_type() == STT_FUNC && symbol.is_definition(endian, names);
        if !is_function || symbol.st_type() == STT_GNU_IFUNC {
            continue;
        }
        let name = symbol.name(endian, names).ok().and_then(|name| std::str::from_utf8(name).ok());
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            is_any = true;
            visit(NamedFunction { name, svma: symbol.st_value(endian), size_bytes: symbol.st_size(endian) });
        }
    }
    is_any.then_some(())
}
