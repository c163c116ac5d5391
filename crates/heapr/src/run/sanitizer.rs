//! Detects programs built with a sanitizer that prevents tracing.
//!
//! | sanitizer | its runtime is a library | its runtime is in the program |
//! |---|---|---|
//! | AddressSanitizer | ends the program, unless `ASAN_OPTIONS` says that it need not be the first | the calls go to it |
//! | ThreadSanitizer | the agent would come before it can be called | the calls go to it |
//! | LeakSanitizer | is traced | the calls go to it |
//! | UndefinedBehaviorSanitizer | is traced | is traced |
//!
//! A runtime inside the program has its own malloc, which the loader prefers to the agent's.

use std::fs::File;

use object::elf::{self, FileHeader64, SectionHeader64, SectionType, Sym64};
use object::read::elf::{FileHeader as _, SectionHeader as _, SectionTable, Sym as _, VersionTable};
use object::{LittleEndian, ReadCache};

/// Sanitizers: beginning of the library's name, a function that identifies the runtime, and the
/// name for users.
const SANITIZERS: [(&str, &str, &str); 5] = [
    ("asan", "__asan_init", "AddressSanitizer"),
    ("tsan", "__tsan_init", "ThreadSanitizer"),
    ("msan", "__msan_init", "MemorySanitizer"),
    ("hwasan", "__hwasan_init", "HWAddressSanitizer"),
    ("lsan", "__lsan_init", "LeakSanitizer"),
];

/// Largest table of a program's file that is read, in bytes.
const TABLE_BYTES_MAX: u64 = 256 << 20;

/// True if a program has a loader and no library, not even the C library, which the agent calls.
/// Go's position-independent programs are like that.
pub(super) fn needs_no_library(program: &File) -> bool {
    let data = ReadCache::new(program);
    let Some(sections) = Sections::read(&data) else { return false };
    sections.of_kind(elf::SHT_DYNAMIC).is_some() && sections.needed().is_empty()
}

/// Returns why a sanitizer prevents tracing, and what helps; `None` if tracing is possible.
pub(super) fn obstacle(program: &File) -> Option<String> {
    let data = ReadCache::new(program);
    let sections = Sections::read(&data)?;
    for library in sections.needed() {
        let name = library.rsplit('/').next().unwrap_or_default();
        let name = name.strip_prefix("libclang_rt.").or_else(|| name.strip_prefix("lib")).unwrap_or_default();
        let is_of =
            |start: &str| name.strip_prefix(start).is_some_and(|rest| rest.starts_with(['.', '-', '_']));
        match SANITIZERS.iter().find(|(start, ..)| is_of(start)) {
            Some(("lsan", ..)) | None => {}
            Some(("asan", ..)) if may_come_second(&std::env::var("ASAN_OPTIONS").unwrap_or_default()) => {}
            Some(("asan", _, name)) => {
                return Some(format!(
                    "it is built with {name}, which ends a program that loads a library before it: build it \
                     without, or set ASAN_OPTIONS=verify_asan_link_order=0"
                ));
            }
            Some((.., name)) => {
                return Some(format!(
                    "it is built with {name}, which cannot start with a library before it: build it without"
                ));
            }
        }
    }
    // Only a program with its own allocator is searched further: that may take a while in a large
    // file.
    if !sections.exports("malloc") {
        return None;
    }
    let inits = SANITIZERS.map(|(_, init, _)| init);
    let number =
        sections.defined(elf::SHT_DYNSYM, &inits).or_else(|| sections.defined(elf::SHT_SYMTAB, &inits))?;
    let (.., name) = SANITIZERS[number];
    Some(format!(
        "it is built with {name}, whose allocator is in the program itself, where calls do not pass by heapr: \
         build it without"
    ))
}

/// Parses `verify_asan_link_order` as the runtime does: the last value counts.
fn may_come_second(options: &str) -> bool {
    let words = options.split([':', ',', ' ', '\t', '\n', '\r']);
    let mut values = words.filter_map(|word| word.strip_prefix("verify_asan_link_order="));
    values.next_back().is_some_and(|value| matches!(value, "0" | "no" | "false"))
}

type Elf = FileHeader64<LittleEndian>;
type Data<'data> = &'data ReadCache<&'data File>;

/// Sections of a 64-bit ELF file; a file without sections is not examined. Only what is asked for
/// is read.
struct Sections<'data> {
    data: Data<'data>,
    table: SectionTable<'data, Elf, Data<'data>>,
}

impl<'data> Sections<'data> {
    fn read(data: Data<'data>) -> Option<Self> {
        let table = Elf::parse(data).ok()?.sections(LittleEndian, data).ok()?;
        Some(Self { data, table })
    }

    /// Returns the first section of a kind, unless it is too large.
    fn of_kind(&self, kind: SectionType) -> Option<&'data SectionHeader64<LittleEndian>> {
        let section = self.table.iter().find(|section| section.sh_type(LittleEndian) == kind);
        section.filter(|section| section.sh_size(LittleEndian) <= TABLE_BYTES_MAX)
    }

    /// Returns the libraries that the program needs.
    fn needed(&self) -> Vec<String> {
        let Ok(dynamic) = self.table.dynamic_table(LittleEndian, self.data) else { return Vec::new() };
        let needed = dynamic.iter().filter(|entry| entry.tag == elf::DT_NEEDED);
        let names = needed.filter_map(|entry| dynamic.string(entry).ok());
        names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
    }

    /// True if the program defines a dynamic symbol of this name.
    fn exports(&self, name: &str) -> bool {
        let hashed = self.is_hashed(name);
        hashed.unwrap_or_else(|| self.defined(elf::SHT_DYNSYM, &[name]).is_some())
    }

    /// Looks a symbol up as the loader does, in a hash table of names; `None` without such a table.
    fn is_hashed(&self, name: &str) -> Option<bool> {
        self.of_kind(elf::SHT_GNU_HASH)?;
        let (hashes, _) = self.table.gnu_hash(LittleEndian, self.data).ok()??;
        self.of_kind(elf::SHT_DYNSYM)?;
        let symbols = self.table.symbols(LittleEndian, self.data, elf::SHT_DYNSYM).ok()?;
        let (name, versions) = (name.as_bytes(), VersionTable::default());
        let found = hashes.find(LittleEndian, name, elf::gnu_hash(name), None, &symbols, &versions);
        Some(found.is_some_and(|(_, symbol)| !symbol.is_undefined(LittleEndian)))
    }

    /// Returns the index in `names` of the first symbol of the section that the file defines
    /// itself.
    fn defined(&self, kind: SectionType, names: &[&str]) -> Option<usize> {
        let section = self.of_kind(kind)?;
        let strings = self.table.section(section.link(LittleEndian)).ok()?;
        if strings.sh_size(LittleEndian) > TABLE_BYTES_MAX {
            return None;
        }
        // At once: there may be a million names.
        let strings = strings.data(LittleEndian, self.data).ok()?;
        let symbols: &[Sym64<LittleEndian>] = section.data_as_array(LittleEndian, self.data).ok()?;
        symbols.iter().filter(|symbol| !symbol.is_undefined(LittleEndian)).find_map(|symbol| {
            let text = strings.get(symbol.st_name(LittleEndian) as usize..)?;
            names.iter().position(|name| {
                text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_option_says_whether_the_runtime_must_be_the_first_library() {
        assert!(may_come_second("verify_asan_link_order=0"));
        assert!(may_come_second("detect_leaks=0:verify_asan_link_order=1,verify_asan_link_order=false"));
        for options in ["", "verify_asan_link_order", "verify_asan_link_order=0:verify_asan_link_order=1"] {
            assert!(!may_come_second(options), "{options}");
        }
    }

    #[test]
    fn a_function_is_found_where_a_file_exports_it() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let library =
            maps.lines().find_map(|line| line.find("/libc.so").and(line.split(' ').next_back())).unwrap();
        let file = File::open(library).unwrap();
        let data = ReadCache::new(&file);
        let sections = Sections::read(&data).unwrap();
        for name in ["malloc", "free", "strlen", "mallo", "mallocs", "__asan_init", ""] {
            let is_there = sections.defined(elf::SHT_DYNSYM, &[name]).is_some();
            assert_eq!(sections.exports(name), is_there, "{name}");
            assert_eq!(is_there, ["malloc", "free", "strlen"].contains(&name), "{name}");
        }
    }

    #[test]
    fn a_file_cut_anywhere_is_no_failure() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cut");
        for bytes in [0, 10, 63, 64, 1000, own.len() / 2, own.len() - 1] {
            std::fs::write(&path, &own[..bytes]).unwrap();
            let file = File::open(&path).unwrap();
            assert!(!needs_no_library(&file) && obstacle(&file).is_none(), "{bytes} bytes");
        }
    }

    #[test]
    fn a_program_without_a_sanitizer_has_no_obstacle() {
        assert_eq!(obstacle(&File::open("/proc/self/exe").unwrap()), None);
    }
}
