//! Function names from an ELF file's symbol table: where there is no debug information.

use std::fs::File;
use std::path::Path;

use object::elf::{FileHeader64, STT_FUNC, STT_NOTYPE};
use object::read::elf::{ElfFile64, SectionHeader as _, Sym as _, SymbolTable};
use object::{Endianness, ReadCache, StringTable};

/// Functions by address.
#[derive(Debug, Default)]
pub(crate) struct ElfSymbols {
    /// (address, size, name), by address.
    functions: Vec<(u64, u64, String)>,
}

impl ElfSymbols {
    /// The functions of the full symbol table, or of the dynamic one if the file is stripped.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = ElfFile64::parse(&cache).ok()?;
        let mut functions = collect(&file, file.elf_symbol_table()).unwrap_or_default();
        if functions.is_empty() {
            functions = collect(&file, file.elf_dynamic_symbol_table()).unwrap_or_default();
        }
        Some(Self::new(functions))
    }

    /// The functions that a file offers to others.
    pub(crate) fn read_exported(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = ElfFile64::parse(&cache).ok()?;
        Some(Self::new(collect(&file, file.elf_dynamic_symbol_table()).ok()?))
    }

    fn new(mut functions: Vec<(u64, u64, String)>) -> Self {
        // Of several names of one function the plainest: `strdup`, not `__strdup` or `__GI___strdup`.
        functions.sort_by(|one, other| {
            let key = |function: &(u64, u64, String)| {
                let underscores = function.2.len() - function.2.trim_start_matches('_').len();
                (function.0, underscores, function.2.len())
            };
            key(one).cmp(&key(other)).then_with(|| one.2.cmp(&other.2))
        });
        functions.dedup_by_key(|function| function.0);
        Self { functions }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// The function that holds an address. One of unknown size (assembly) ends where the next begins.
    pub(crate) fn find(&self, svma: u64) -> Option<&str> {
        let place = self.functions.partition_point(|&(address, ..)| address <= svma).checked_sub(1)?;
        let (address, size, name) = self.functions.get(place)?;
        (*size == 0 || svma - address < *size).then_some(name.as_str())
    }
}

type Elf<'c> = ElfFile64<'c, Endianness, &'c ReadCache<File>>;
type Symbols<'c> = SymbolTable<'c, FileHeader64<Endianness>, &'c ReadCache<File>>;

fn collect<'c>(file: &Elf<'c>, symbols: &Symbols<'c>) -> object::Result<Vec<(u64, u64, String)>> {
    let endian = file.endian();
    // The names in one piece: the cache would read each by itself, two system calls for each of Node's 100,000.
    let names = file.elf_section_table().section(symbols.string_section())?.data(endian, file.data())?;
    let names = StringTable::new(names, 0, names.len() as u64);
    let functions = symbols.iter().filter(|symbol| {
        let is_code = matches!(symbol.st_type(), STT_FUNC | STT_NOTYPE);
        is_code && symbol.is_definition(endian, names)
    });
    let named = functions.filter_map(|symbol| {
        let name = std::str::from_utf8(symbol.name(endian, names).ok()?).ok()?;
        let (address, size) = (symbol.st_value(endian), symbol.st_size(endian));
        (!name.is_empty()).then(|| (address, size, name.to_owned()))
    });
    Ok(named.collect())
}
