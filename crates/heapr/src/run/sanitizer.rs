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
use std::os::unix::fs::FileExt as _;

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
    let Some(sections) = Sections::read(program) else { return false };
    sections.linked(SHT_DYNAMIC).is_some() && sections.needed().is_empty()
}

/// Returns why a sanitizer prevents tracing, and what helps; `None` if tracing is possible.
pub(super) fn obstacle(program: &File) -> Option<String> {
    let sections = Sections::read(program)?;
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
    let number = sections.defined(SHT_DYNSYM, &inits).or_else(|| sections.defined(SHT_SYMTAB, &inits))?;
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

const SHT_SYMTAB: u32 = 2;
const SHT_DYNAMIC: u32 = 6;
const SHT_DYNSYM: u32 = 11;
const SHT_GNU_HASH: u32 = 0x6fff_fff6;

/// Longest name of a library that is read, in bytes.
const NAME_BYTES_MAX: u64 = 256;
/// Most symbols of a hash bucket that are read; linkers put two or three into one.
const BUCKET_SYMBOLS_MAX: usize = 10_000;
/// Bytes of a symbol's entry.
const SYMBOL_BYTES: u64 = 24;

/// Fields of an `Elf64_Shdr`.
#[derive(Debug, Clone, Copy)]
struct Section {
    kind: u32,
    link: u32,
    offset: u64,
    bytes: u64,
}

/// Sections of a 64-bit ELF file; a file without sections is not examined.
struct Sections<'file> {
    file: &'file File,
    all: Vec<Section>,
}

impl<'file> Sections<'file> {
    fn read(file: &'file File) -> Option<Self> {
        const HEADER_BYTES: u64 = 64;
        let header = read(file, 0, HEADER_BYTES)?;
        let (offset, entry_bytes) = (word(&header, 40)?, half(&header, 58)?);
        if u64::from(entry_bytes) != HEADER_BYTES {
            return None;
        }
        let table = read(file, offset, u64::from(half(&header, 60)?) * HEADER_BYTES)?;
        let section = |entry: &[u8]| {
            Some(Section {
                kind: int(entry, 4)?,
                link: int(entry, 40)?,
                offset: word(entry, 24)?,
                bytes: word(entry, 32)?,
            })
        };
        let all = table.chunks_exact(64).map(section).collect::<Option<_>>()?;
        Some(Self { file, all })
    }

    /// Returns the first section of a kind, and the string section that it links to.
    fn linked(&self, kind: u32) -> Option<(Section, Section)> {
        let section = *self.all.iter().find(|section| section.kind == kind)?;
        Some((section, *self.all.get(usize::try_from(section.link).ok()?)?))
    }

    fn contents(&self, section: Section) -> Option<Vec<u8>> {
        read(self.file, section.offset, section.bytes)
    }

    /// Returns the libraries that the program needs.
    fn needed(&self) -> Vec<String> {
        const DT_NEEDED: u64 = 1;
        let Some((dynamic, strings)) = self.linked(SHT_DYNAMIC) else { return Vec::new() };
        let dynamic = self.contents(dynamic).unwrap_or_default();
        let entries = dynamic.chunks_exact(16).filter(|entry| word(entry, 0) == Some(DT_NEEDED));
        // Names are read one by one: the strings of a large program take milliseconds.
        let name = |entry| {
            let at = word(entry, 8)?;
            let bytes = strings.bytes.checked_sub(at)?.min(NAME_BYTES_MAX);
            let text = read(self.file, strings.offset.checked_add(at)?, bytes)?;
            let text = text.split(|&byte| byte == 0).next()?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        entries.filter_map(name).collect()
    }

    /// True if the program defines a dynamic symbol of this name.
    fn exports(&self, name: &str) -> bool {
        let hashed = self.linked(SHT_GNU_HASH).and_then(|(table, _)| self.is_hashed(table, name));
        hashed.unwrap_or_else(|| self.defined(SHT_DYNSYM, &[name]).is_some())
    }

    /// Looks a symbol up as the loader does, in a hash table of names.
    ///
    /// ```text
    /// buckets:u32 first:u32 filter_words:u32 shift:u32   filter: u64[filter_words]   bucket: u32[buckets]   hash: u32[symbols - first]
    /// ```
    /// A bucket holds the number of its first symbol, or 0 if it is empty. The lowest bit of a hash
    /// marks the last symbol of a bucket. Returns `None` if the table is damaged.
    fn is_hashed(&self, table: Section, name: &str) -> Option<bool> {
        let header = read(self.file, table.offset, 16)?;
        let [buckets, first, filter_words] = [0, 4, 8].map(|at| int(&header, at).unwrap_or(0));
        let hash =
            name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(byte)));
        let place = |at: u64| int(&read(self.file, table.offset.checked_add(at)?, 4)?, 0);
        let bucket_at = 16 + u64::from(filter_words) * 8;
        let mut number = place(bucket_at + u64::from(hash.checked_rem(buckets)?) * 4)?;
        let (symbols, strings) = self.linked(SHT_DYNSYM)?;
        let hashes_at = bucket_at + u64::from(buckets) * 4;
        let mut is_last = false;
        for _ in 0..BUCKET_SYMBOLS_MAX {
            if number == 0 || is_last {
                break;
            }
            let found = place(hashes_at + u64::from(number.checked_sub(first)?) * 4)?;
            if found | 1 == hash | 1 {
                let at = symbols.offset.checked_add(u64::from(number) * SYMBOL_BYTES)?;
                let symbol = read(self.file, at, SYMBOL_BYTES)?;
                let text_at = strings.offset.checked_add(u64::from(int(&symbol, 0)?))?;
                let text = read(self.file, text_at, name.len() as u64 + 1)?;
                if half(&symbol, 6)? != 0 && text.strip_prefix(name.as_bytes()) == Some(&[0]) {
                    return Some(true);
                }
            }
            is_last = found & 1 != 0;
            number = number.checked_add(1)?;
        }
        (number == 0 || is_last).then_some(false)
    }

    /// Returns the index in `names` of the first symbol of the section that the file defines
    /// itself.
    fn defined(&self, kind: u32, names: &[&str]) -> Option<usize> {
        let (symbols, strings) = self.linked(kind)?;
        let (symbols, strings) = (self.contents(symbols)?, self.contents(strings)?);
        symbols.chunks_exact(SYMBOL_BYTES as usize).filter(|symbol| half(symbol, 6) != Some(0)).find_map(
            |symbol| {
                let text = strings.get(usize::try_from(int(symbol, 0)?).ok()?..)?;
                names.iter().position(|name| {
                    text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
                })
            },
        )
    }
}

/// Reads a part of the file; `None` if the file does not have all of it.
fn read(file: &File, offset: u64, bytes: u64) -> Option<Vec<u8>> {
    if bytes > TABLE_BYTES_MAX || offset.checked_add(bytes)? > file.metadata().ok()?.len() {
        return None;
    }
    let mut part = vec![0; usize::try_from(bytes).ok()?];
    file.read_exact_at(&mut part, offset).ok()?;
    Some(part)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
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
        let sections = Sections::read(&file).unwrap();
        for name in ["malloc", "free", "strlen", "mallo", "mallocs", "__asan_init", ""] {
            let is_there = sections.defined(SHT_DYNSYM, &[name]).is_some();
            assert_eq!(sections.exports(name), is_there, "{name}");
            assert_eq!(is_there, ["malloc", "free", "strlen"].contains(&name), "{name}");
        }
    }

    #[test]
    fn a_program_without_a_sanitizer_has_no_obstacle() {
        assert_eq!(obstacle(&File::open("/proc/self/exe").unwrap()), None);
    }
}
