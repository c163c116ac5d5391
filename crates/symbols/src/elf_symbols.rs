//! Function names from an ELF file's symbol table: where there is no debug information.

use std::fs::File;
use std::path::Path;

use object::elf::{FileHeader64, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_NOTYPE, SectionType};
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};
use object::{Endianness, ReadCache, StringTable};

/// The functions at some addresses: found in one pass over the symbols, without a table of all of them. (Node has 110,000,
/// which to copy and sort took 60 ms; mostly a handful of addresses is asked for, which the cache does not know yet.)
#[derive(Debug, Default)]
pub(crate) struct ElfSymbols {
    /// What was asked for, in order.
    svmas: Vec<u64>,
    /// By address: the last function that begins at or before it.
    functions: Vec<Option<Function>>,
    has_functions: bool,
}

#[derive(Debug, Clone)]
struct Function {
    svma: u64,
    size_bytes: u64,
    name: String,
}

impl ElfSymbols {
    /// The functions at addresses (in order) by the full symbol table, or by the dynamic one if the file is stripped.
    pub(crate) fn read(path: &Path, svmas: &[u64]) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let full = find(&cache, SHT_SYMTAB, svmas).filter(|full| full.has_functions);
        full.or_else(|| find(&cache, SHT_DYNSYM, svmas))
    }

    /// The functions at addresses (in order) among those that a file offers to others.
    pub(crate) fn read_exported(path: &Path, svmas: &[u64]) -> Option<Self> {
        find(&ReadCache::new(File::open(path).ok()?), SHT_DYNSYM, svmas)
    }

    /// Whether the file has none at all.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_functions
    }

    /// The function that holds an address. One of unknown size (assembly) ends where the next begins.
    pub(crate) fn find(&self, svma: u64) -> Option<&str> {
        let place = self.svmas.binary_search(&svma).ok()?;
        let Function { svma: begin, size_bytes, name } = self.functions.get(place)?.as_ref()?;
        (*size_bytes == 0 || svma - begin < *size_bytes).then_some(name.as_str())
    }
}

/// Candidates for an address, while symbols are looked at.
#[derive(Clone, Copy)]
struct Candidate<'n> {
    svma: u64,
    size_bytes: u64,
    name: &'n str,
}

/// Of several names of one function the plainest is wanted: `strdup`, not `__strdup` or `__GI___strdup`.
fn plainness(name: &str) -> (usize, usize, &str) {
    (name.len() - name.trim_start_matches('_').len(), name.len(), name)
}

fn find(cache: &ReadCache<File>, table: SectionType, svmas: &[u64]) -> Option<ElfSymbols> {
    let header = FileHeader64::<Endianness>::parse(cache).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, cache).ok()?;
    let symbols = sections.symbols(endian, cache, table).ok()?;
    // The names in one piece: the cache would read each by itself, two system calls for each of Node's 100,000.
    let names = sections.section(symbols.string_section()).ok()?.data(endian, cache).ok()?;
    let names = StringTable::new(names, 0, names.len() as u64);
    // By address: the last function that begins behind the address before it.
    let mut candidates: Vec<Option<Candidate<'_>>> = vec![None; svmas.len()];
    let mut has_functions = false;
    for symbol in symbols.iter() {
        let svma = symbol.st_value(endian);
        if !matches!(symbol.st_type(), STT_FUNC | STT_NOTYPE) {
            continue;
        }
        let place = svmas.partition_point(|&asked| asked < svma);
        let known = candidates.get(place).copied().flatten();
        let is_candidate = place < svmas.len() && known.is_none_or(|known| known.svma <= svma);
        // One that cannot be meant is looked at only as long as none is known.
        if has_functions && !is_candidate || !symbol.is_definition(endian, names) {
            continue;
        }
        let name = symbol.name(endian, names).ok().and_then(|name| std::str::from_utf8(name).ok());
        let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
        has_functions = true;
        let is_plainer =
            known.is_none_or(|known| known.svma < svma || plainness(name) < plainness(known.name));
        if is_candidate && is_plainer {
            candidates[place] = Some(Candidate { svma, size_bytes: symbol.st_size(endian), name });
        }
    }
    let mut last = None;
    let functions = candidates.into_iter().map(|candidate| {
        last = candidate.or(last);
        last.map(|Candidate { svma, size_bytes, name }| Function { svma, size_bytes, name: name.to_owned() })
    });
    Some(ElfSymbols { svmas: svmas.to_vec(), functions: functions.collect(), has_functions })
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSymbol as _, SymbolKind};

    use super::*;

    /// All functions of a file, sorted, the plainest name of each address first.
    fn sorted(path: &Path) -> Vec<(u64, u64, String)> {
        let bytes = std::fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let is_function =
            |kind: SymbolKind| matches!(kind, SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown);
        let mut functions: Vec<(u64, u64, String)> = file
            .symbols()
            .filter(|symbol| symbol.is_definition() && is_function(symbol.kind()))
            .filter_map(|symbol| Some((symbol.address(), symbol.size(), symbol.name().ok()?.to_owned())))
            .filter(|(_, _, name)| !name.is_empty())
            .collect();
        functions.sort_by(|one, other| (one.0, plainness(&one.2)).cmp(&(other.0, plainness(&other.2))));
        functions.dedup_by_key(|function| function.0);
        functions
    }

    #[test]
    fn each_address_gets_the_function_that_a_sorted_table_gives() {
        let path = std::env::current_exe().unwrap();
        let functions = sorted(&path);
        assert!(functions.len() > 1000, "{} functions", functions.len());
        let begins = functions.iter().map(|function| function.0);
        let inside = functions.iter().map(|function| function.0 + function.1 / 2);
        let mut svmas: Vec<u64> = begins.chain(inside).chain([0, 1, u64::MAX]).collect();
        svmas.sort_unstable();
        svmas.dedup();
        let expected = |svma: u64| {
            let place = functions.partition_point(|function| function.0 <= svma).checked_sub(1)?;
            let (begin, size_bytes, name) = &functions[place];
            (*size_bytes == 0 || svma - begin < *size_bytes).then_some(name.as_str())
        };
        let all = ElfSymbols::read(&path, &svmas).unwrap();
        for &svma in &svmas {
            assert_eq!(all.find(svma), expected(svma), "{svma:#x}");
        }
        // Asked for alone an address gets the same answer.
        for &svma in svmas.iter().step_by(svmas.len() / 20) {
            assert_eq!(ElfSymbols::read(&path, &[svma]).unwrap().find(svma), expected(svma), "{svma:#x}");
        }
        assert!(!ElfSymbols::read(&path, &[]).unwrap().is_empty());
    }
}
