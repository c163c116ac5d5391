//! Whether a program is built with a sanitizer beside which the agent cannot work.
//!
//! | sanitizer | its runtime is a library | its runtime is in the program |
//! |---|---|---|
//! | AddressSanitizer | ends the program, unless `ASAN_OPTIONS` says that it need not be the first | the calls go to it |
//! | ThreadSanitizer | the agent would come before it can be called | the calls go to it |
//! | LeakSanitizer | is traced | the calls go to it |
//! | UndefinedBehaviorSanitizer | is traced | is traced |
//!
//! A runtime in the program brings its own malloc, which the loader prefers to the agent's.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

/// The names that their libraries' begin with, the function in each that says where it is, and what they are called.
const SANITIZERS: [(&str, &str, &str); 5] = [
    ("asan", "__asan_init", "AddressSanitizer"),
    ("tsan", "__tsan_init", "ThreadSanitizer"),
    ("msan", "__msan_init", "MemorySanitizer"),
    ("hwasan", "__hwasan_init", "HWAddressSanitizer"),
    ("lsan", "__lsan_init", "LeakSanitizer"),
];

/// Tables of a program's file that are longer are not looked at.
const TABLE_BYTES_MAX: u64 = 256 << 20;

/// Why the program cannot be traced, and what helps; `None` if no sanitizer keeps it from that.
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
    // Only who brings an allocator is searched for the rest: that may take a while in a large program.
    sections.defined(SHT_DYNSYM, &["malloc"])?;
    let inits = SANITIZERS.map(|(_, init, _)| init);
    let number = sections.defined(SHT_DYNSYM, &inits).or_else(|| sections.defined(SHT_SYMTAB, &inits))?;
    let (.., name) = SANITIZERS[number];
    Some(format!(
        "it is built with {name}, whose allocator is in the program itself, where calls do not pass by heapr: \
         build it without"
    ))
}

/// As the runtime reads its options; the last counts.
fn may_come_second(options: &str) -> bool {
    let words = options.split([':', ',', ' ', '\t', '\n', '\r']);
    let mut values = words.filter_map(|word| word.strip_prefix("verify_asan_link_order="));
    values.next_back().is_some_and(|value| matches!(value, "0" | "no" | "false"))
}

const SHT_SYMTAB: u32 = 2;
const SHT_DYNAMIC: u32 = 6;
const SHT_DYNSYM: u32 = 11;

/// `Elf64_Shdr`, what is needed of it.
#[derive(Debug, Clone, Copy)]
struct Section {
    kind: u32,
    link: u32,
    offset: u64,
    bytes: u64,
}

/// The sections of an ELF file of 64 bits; a file without any is not looked at.
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

    /// The first of a kind, and the strings that it names.
    fn with_strings(&self, kind: u32) -> Option<(Vec<u8>, Vec<u8>)> {
        let section = self.all.iter().find(|section| section.kind == kind)?;
        let strings = self.all.get(usize::try_from(section.link).ok()?)?;
        Some((
            read(self.file, section.offset, section.bytes)?,
            read(self.file, strings.offset, strings.bytes)?,
        ))
    }

    /// The libraries that the program names.
    fn needed(&self) -> Vec<String> {
        const DT_NEEDED: u64 = 1;
        let Some((dynamic, strings)) = self.with_strings(SHT_DYNAMIC) else { return Vec::new() };
        let entries = dynamic.chunks_exact(16).filter(|entry| word(entry, 0) == Some(DT_NEEDED));
        let name = |entry| {
            let text = strings.get(usize::try_from(word(entry, 8)?).ok()?..)?;
            let text = text.split(|&byte| byte == 0).next()?;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        entries.filter_map(name).collect()
    }

    /// Which of the names is that of one of the section's symbols that are not another module's.
    fn defined(&self, kind: u32, names: &[&str]) -> Option<usize> {
        let (symbols, strings) = self.with_strings(kind)?;
        symbols.chunks_exact(24).filter(|symbol| half(symbol, 6) != Some(0)).find_map(|symbol| {
            let text = strings.get(usize::try_from(int(symbol, 0)?).ok()?..)?;
            names.iter().position(|name| {
                text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0))
            })
        })
    }
}

/// A part of the file; `None` if it is not there as a whole.
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
    fn a_program_without_a_sanitizer_has_no_obstacle() {
        assert_eq!(obstacle(&File::open("/proc/self/exe").unwrap()), None);
    }
}
