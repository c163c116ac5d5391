//! Function names from an ELF file's symbol tables, for files without debug information.

use std::fs::File;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use lzma_rust2::XzReader;
use object::elf::{
    DT_GNU_HASH, DT_HASH, DT_STRSZ, DT_STRTAB, DT_SYMTAB, Dyn64, FileHeader64, PT_LOAD, ProgramHeader64,
    SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, STT_NOTYPE, SectionType, Sym64,
};
use object::read::elf::{
    Dyn as _, FileHeader as _, GnuHashTable, HashTable, ProgramHeader as _, SectionHeader as _, Sym as _,
};
use object::{Endianness, ReadCache, ReadRef, StringTable};

type Header = FileHeader64<Endianness>;

/// Largest size in bytes of unpacked `.gnu_debugdata`.
const MINI_BYTES_MAX: u64 = 128 << 20;
/// Largest memory for unpacking it, in KiB.
const MINI_MEMORY_KIB_MAX: u32 = 128 << 10;

/// Functions at some addresses, found in one pass over the symbols without a table of all. Copying
/// and sorting Node's 110,000 symbols took 60 ms; mostly only a handful of addresses is requested,
/// because the cache has the others.
#[derive(Debug, Default)]
pub(crate) struct ElfSymbols {
    /// Requested addresses, in order.
    svmas: Vec<u64>,
    /// For each address: the last function that begins at or before it.
    functions: Vec<Option<Function>>,
    has_functions: bool,
}

#[derive(Debug, Clone)]
struct Function {
    svma: u64,
    /// End of the code that the name is proven for.
    end_svma: u64,
    name: String,
}

/// Extent of a table of symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Listed {
    /// All functions: one of unknown size (assembly) ends where the next begins, or its section.
    All,
    /// A stripped file's exported functions. Others may follow one of unknown size, which names its
    /// first byte alone: `_init` is not the function megabytes behind it.
    Exported,
}

impl ElfSymbols {
    /// Finds the functions at addresses (in order) in the full symbol table. For a stripped file:
    /// in the dynamic one, and in the table that distributions pack into `.gnu_debugdata`.
    pub(crate) fn read(path: &Path, svmas: &[u64]) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let mut scan = Scan::new(svmas, Listed::All);
        scan.section(&cache, SHT_SYMTAB);
        if scan.has_functions {
            return Some(scan.finish());
        }
        let mini = mini_file(&cache);
        let listed = if mini.is_some() { Listed::All } else { Listed::Exported };
        let mut scan = Scan::new(svmas, listed);
        let is_read = scan.section(&cache, SHT_DYNSYM).or_else(|| scan.dynamic_segment(&cache));
        let is_mini_read = mini.as_deref().and_then(|mini| scan.section(mini, SHT_SYMTAB));
        is_read.or(is_mini_read).map(|()| scan.finish())
    }

    /// Finds the functions at addresses (in order) among the exported ones.
    pub(crate) fn read_exported(path: &Path, svmas: &[u64]) -> Option<Self> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let mut scan = Scan::new(svmas, Listed::Exported);
        scan.section(&cache, SHT_DYNSYM).map(|()| scan.finish())
    }

    /// True if the file has no functions.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_functions
    }

    /// Function that contains an address.
    pub(crate) fn find(&self, svma: u64) -> Option<&str> {
        let function = self.last_at(svma)?;
        (svma < function.end_svma).then_some(function.name.as_str())
    }

    /// Range of the function that contains an address.
    pub(crate) fn range(&self, svma: u64) -> Option<Range<u64>> {
        let &Function { svma: begin, end_svma, .. } = self.last_at(svma)?;
        (svma < end_svma).then_some(begin..end_svma)
    }

    /// Function that begins at an address.
    pub(crate) fn beginning_at(&self, svma: u64) -> Option<&str> {
        self.last_at(svma).filter(|function| function.svma == svma).map(|function| function.name.as_str())
    }

    /// Last function that begins at or before an address.
    fn last_at(&self, svma: u64) -> Option<&Function> {
        self.functions.get(self.svmas.binary_search(&svma).ok()?)?.as_ref()
    }
}

/// Unpacks MiniDebugInfo's xz-compressed ELF file, which holds the symbols that are not exported.
pub(crate) fn mini_file(cache: &ReadCache<File>) -> Option<Vec<u8>> {
    let header = Header::parse(cache).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, cache).ok()?;
    let (_, section) = sections.section_by_name(endian, b".gnu_debugdata")?;
    let packed = section.data(endian, cache).ok()?;
    let mut unpacked = Vec::new();
    let reader = XzReader::new_mem_limit(packed, false, MINI_MEMORY_KIB_MAX);
    let is_whole = reader.take(MINI_BYTES_MAX + 1).read_to_end(&mut unpacked).is_ok();
    (is_whole && unpacked.len() as u64 <= MINI_BYTES_MAX).then_some(unpacked)
}

/// Sort key for several names of one function, plainest first: `strdup`, not `__strdup` or
/// `__GI___strdup`.
fn plainness(name: &str) -> (usize, usize, &str) {
    (name.len() - name.trim_start_matches('_').len(), name.len(), name)
}

/// State of one or several passes over symbols.
struct Scan<'a> {
    svmas: &'a [u64],
    /// For each address: the last function that begins at or before it, and behind the preceding
    /// address.
    candidates: Vec<Option<Function>>,
    has_functions: bool,
    listed: Listed,
}

impl<'a> Scan<'a> {
    fn new(svmas: &'a [u64], listed: Listed) -> Self {
        Self { svmas, candidates: vec![None; svmas.len()], has_functions: false, listed }
    }

    /// Scans a table in a section; `None` if it does not exist.
    fn section<'d>(&mut self, data: impl ReadRef<'d>, table: SectionType) -> Option<()> {
        let header = Header::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let symbols = sections.symbols(endian, data, table).ok()?;
        // The names are read in one piece. The cache would read each by itself: two system calls
        // for each of Node's 100,000.
        let names = sections.section(symbols.string_section()).ok()?.data(endian, data).ok()?;
        let ends: Vec<u64> = sections
            .iter()
            .map(|section| section.sh_addr(endian).saturating_add(section.sh_size(endian)))
            .collect();
        self.look_at(symbols.symbols(), names, &ends, endian);
        Some(())
    }

    /// Scans the loader's table, the only one of an image without sections.
    fn dynamic_segment<'d>(&mut self, data: impl ReadRef<'d>) -> Option<()> {
        let header = Header::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, data).ok()?;
        let entries = segments.iter().find_map(|segment| segment.dynamic(endian, data).ok()?)?;
        let value = |tag| {
            let entry = entries.iter().find(|entry: &&Dyn64<Endianness>| entry.d_tag(endian) == tag)?;
            Some(entry.d_val(endian))
        };
        let content = |svma: u64| from_svma(segments, endian, data, svma);
        let count = value(DT_GNU_HASH)
            .and_then(|svma| {
                GnuHashTable::<Header>::parse(endian, content(svma)?).ok()?.symbol_table_length(endian)
            })
            .or_else(|| {
                let table = HashTable::<Header>::parse(endian, content(value(DT_HASH)?)?).ok()?;
                Some(table.symbol_table_length())
            })?;
        let symbols = content(value(DT_SYMTAB)?)?;
        let (symbols, _) = object::slice_from_bytes::<Sym64<Endianness>>(symbols, count as usize).ok()?;
        let names = content(value(DT_STRTAB)?)?;
        let names = names.get(..usize::try_from(value(DT_STRSZ)?).ok()?)?;
        self.look_at(symbols, names, &[], endian);
        Some(())
    }

    /// Looks at symbols. `section_ends`: by section; empty: unknown.
    fn look_at(
        &mut self,
        symbols: &[Sym64<Endianness>],
        names: &[u8],
        section_ends: &[u64],
        endian: Endianness,
    ) {
        let names = StringTable::new(names, 0, names.len() as u64);
        for symbol in symbols {
            let svma = symbol.st_value(endian);
            if !matches!(symbol.st_type(), STT_FUNC | STT_NOTYPE) {
                continue;
            }
            let place = self.svmas.partition_point(|&asked| asked < svma);
            let known = self.candidates.get(place).and_then(Option::as_ref);
            let is_candidate = place < self.svmas.len() && known.is_none_or(|known| known.svma <= svma);
            // Other symbols are examined only until one function is known, for `has_functions`.
            if self.has_functions && !is_candidate || !symbol.is_definition(endian, names) {
                continue;
            }
            let name = symbol.name(endian, names).ok().and_then(|name| std::str::from_utf8(name).ok());
            let Some(name) = name.filter(|name| !name.is_empty()) else { continue };
            self.has_functions = true;
            let is_plainer =
                known.is_none_or(|known| known.svma < svma || plainness(name) < plainness(&known.name));
            if is_candidate && is_plainer {
                let end_svma = match (symbol.st_size(endian), self.listed) {
                    (0, Listed::Exported) => svma.saturating_add(1),
                    (0, Listed::All) => {
                        let section = usize::from(symbol.st_shndx(endian).0);
                        section_ends.get(section).copied().unwrap_or(u64::MAX)
                    }
                    (size_bytes, _) => svma.saturating_add(size_bytes),
                };
                self.candidates[place] = Some(Function { svma, end_svma, name: name.to_owned() });
            }
        }
    }

    fn finish(self) -> ElfSymbols {
        let mut last = None;
        let functions = self.candidates.into_iter().map(|candidate| {
            last = candidate.or_else(|| last.take());
            last.clone()
        });
        ElfSymbols {
            svmas: self.svmas.to_vec(),
            functions: functions.collect(),
            has_functions: self.has_functions,
        }
    }
}

/// Content from an address to the end of its segment's part of the file.
fn from_svma<'d>(
    segments: &[ProgramHeader64<Endianness>],
    endian: Endianness,
    data: impl ReadRef<'d>,
    svma: u64,
) -> Option<&'d [u8]> {
    segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD).find_map(|segment| {
        let offset = svma.checked_sub(segment.p_vaddr(endian))?;
        let left = segment.p_filesz(endian).checked_sub(offset).filter(|&left| left > 0)?;
        data.read_bytes_at(segment.p_offset(endian).checked_add(offset)?, left).ok()
    })
}

#[cfg(test)]
mod tests {
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SymbolKind};

    use super::*;

    /// Start and end of all functions of a file, by start, the plainest name of each first.
    fn sorted(path: &Path) -> Vec<(u64, u64, String)> {
        let bytes = std::fs::read(path).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let is_function =
            |kind: SymbolKind| matches!(kind, SymbolKind::Text | SymbolKind::Label | SymbolKind::Unknown);
        let end_of = |symbol: &object::Symbol<'_, '_>| match symbol.size() {
            0 => symbol
                .section_index()
                .and_then(|index| file.section_by_index(index).ok())
                .map_or(u64::MAX, |section| section.address() + section.size()),
            size_bytes => symbol.address() + size_bytes,
        };
        let mut functions: Vec<(u64, u64, String)> = file
            .symbols()
            .filter(|symbol| symbol.is_definition() && is_function(symbol.kind()))
            .filter_map(|symbol| Some((symbol.address(), end_of(&symbol), symbol.name().ok()?.to_owned())))
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
        let inside = functions.iter().map(|function| function.0 + function.1.saturating_sub(function.0) / 2);
        let mut svmas: Vec<u64> = begins.chain(inside).chain([0, 1, u64::MAX]).collect();
        svmas.sort_unstable();
        svmas.dedup();
        let expected = |svma: u64| {
            let place = functions.partition_point(|function| function.0 <= svma).checked_sub(1)?;
            let (_, end, name) = &functions[place];
            (svma < *end).then_some(name.as_str())
        };
        let all = ElfSymbols::read(&path, &svmas).unwrap();
        for &svma in &svmas {
            assert_eq!(all.find(svma), expected(svma), "{svma:#x}");
        }
        // A single address gets the same answer.
        for &svma in svmas.iter().step_by(svmas.len() / 20) {
            assert_eq!(ElfSymbols::read(&path, &[svma]).unwrap().find(svma), expected(svma), "{svma:#x}");
        }
        assert!(!ElfSymbols::read(&path, &[]).unwrap().is_empty());
    }
}
