//! Function names from an ELF file's symbol table: where there is no debug information.

use std::fs::File;
use std::path::Path;

use object::read::ReadCache;
use object::{Object, ObjectSymbol, SymbolKind};

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
        let file = object::File::parse(&cache).ok()?;
        let mut functions = collect(file.symbols());
        if functions.is_empty() {
            functions = collect(file.dynamic_symbols());
        }
        Some(Self::new(functions))
    }

    /// The functions that a file offers to others.
    pub(crate) fn read_exported(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        Some(Self::new(collect(file.dynamic_symbols())))
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

fn collect<'data>(symbols: impl Iterator<Item = impl ObjectSymbol<'data>>) -> Vec<(u64, u64, String)> {
    symbols
        .filter(|symbol| {
            symbol.is_definition() && matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown)
        })
        .filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?;
            Some((symbol.address(), symbol.size(), name.to_owned()))
        })
        .collect()
}
