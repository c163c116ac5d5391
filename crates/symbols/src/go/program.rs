//! Version of a Go program, and the variables of its runtime's heap profile. Untrusted: every
//! address is checked against the file.
//!
//! The variables have symbols. In a stripped program they are read from the code of functions that
//! the function table names. Each of these functions uses its variable first, or last.

use std::path::Path;

use object::read::elf::FileHeader as _;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, ObjectSymbol as _};

use crate::arch::{self, Decision, Width};
use crate::go::TABLE_SECTIONS;
use crate::go::table::{GoFunction, GoTable};
use crate::mapped_file::map;

/// Addresses of the variables of a runtime's heap profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoPlaces {
    /// Variable with the address of the first bucket.
    pub buckets_svma: u64,
    /// Variable with the mean distance of two samples in bytes; its value is 0 if sampling is off.
    pub rate_svma: u64,
    /// Variable with the number of the collection; its lowest bit says whether the collection was
    /// flushed to the profile. 0: address unknown.
    pub cycle_svma: u64,
    /// Byte that is set at the start if the program uses no profile. 0: address unknown.
    pub unwanted_svma: u64,
}

/// A program or library written in Go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoProgram {
    /// Version, such as `go1.22.3`; empty if unknown.
    pub version: String,
    /// Variables of the profile; `None` if neither symbols nor code reveal them.
    pub places: Option<GoPlaces>,
}

impl GoProgram {
    /// Reads a file; `None` if it is not a Go program.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        let bytes = map(path)?;
        // Only the section list is read here, because most files are not Go programs.
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
        let table = TABLE_SECTIONS.iter().find_map(|name| file.section_by_name(name))?;
        let version = version(&file).unwrap_or_default();
        let symbols = Places::by_symbols(&file);
        let by_code = || {
            let text_svma = file.section_by_name(".text")?.address();
            Places::by_code(&file, &GoTable::of(table.data().ok()?, text_svma)?)
        };
        let places = symbols.or_else(by_code).map(Places::of);
        Some(Self { version, places })
    }
}

/// Whether a file is a Go program. Only its list of sections is read.
#[must_use]
pub fn is_go_program(path: &Path) -> bool {
    let Some(bytes) = map(path) else { return false };
    let file = object::read::elf::ElfFile64::<object::Endianness>::parse(&*bytes);
    file.is_ok_and(|file| TABLE_SECTIONS.iter().any(|name| file.section_by_name(name).is_some()))
}

type File<'a> = object::read::elf::ElfFile64<'a, object::Endianness>;

#[derive(Default)]
struct Places {
    buckets: Option<u64>,
    rate: Option<u64>,
    cycle: Option<u64>,
    unwanted: Option<u64>,
}

impl Places {
    fn of(self) -> GoPlaces {
        GoPlaces {
            buckets_svma: self.buckets.unwrap_or(0),
            rate_svma: self.rate.unwrap_or(0),
            cycle_svma: self.cycle.unwrap_or(0),
            unwanted_svma: self.unwanted.unwrap_or(0),
        }
    }

    fn filled(self) -> Option<Self> {
        (self.buckets.is_some() && self.rate.is_some()).then_some(self)
    }

    fn by_symbols(file: &File<'_>) -> Option<Self> {
        let mut places = Self::default();
        for symbol in file.symbols() {
            let place = match symbol.name_bytes() {
                Ok(b"runtime.mbuckets") => &mut places.buckets,
                Ok(b"runtime.MemProfileRate") => &mut places.rate,
                Ok(b"runtime.mProfCycle") => &mut places.cycle,
                Ok(b"runtime.disableMemoryProfiling") => &mut places.unwanted,
                _ => continue,
            };
            *place = Some(symbol.address()).filter(|&svma| svma != 0);
        }
        places.filled()
    }

    fn by_code(file: &File<'_>, table: &GoTable<'_>) -> Option<Self> {
        let code = |name: &str| -> Option<(GoFunction, &[u8])> {
            const BYTES_MAX: u64 = 64 << 10;
            let function = table.named(name)?;
            let bytes = function.end_svma.checked_sub(function.start_svma)?.min(BYTES_MAX);
            let text = file.section_by_name(".text")?;
            let code = text.data_range(function.start_svma, bytes).ok()??;
            Some((function, code))
        };
        let patterns = arch::go_patterns(file.elf_header().e_machine(object::Endianness::Little).0)?;
        let loads = |name: &str, width: Width| -> Vec<u64> {
            let Some((function, code)) = code(name) else { return Vec::new() };
            let places =
                (0..code.len()).filter_map(|at| (patterns.load)(width, code, at, function.start_svma));
            places.filter(|&svma| is_writable(file, svma)).collect()
        };
        let rate = loads("runtime.profilealloc", Width::Word).pop()?;
        let find = |name: &str, pattern: Decision| {
            let (function, code) = code(name)?;
            (0..code.len()).find_map(|at| pattern(code, at, function.start_svma, rate))
        };
        let unwanted =
            find("runtime.schedinit", patterns.switch).or_else(|| find("runtime.init", patterns.choice));
        Self {
            buckets: loads("runtime.mProf_FlushLocked", Width::Word).first().copied(),
            rate: Some(rate),
            cycle: loads("runtime.mProf_Malloc", Width::Half).first().copied(),
            unwanted: unwanted.filter(|&svma| is_writable(file, svma)),
        }
        .filled()
    }
}

fn is_writable(file: &File<'_>, svma: u64) -> bool {
    const PF_W: u32 = 2;
    file.segments().any(|segment| {
        let object::SegmentFlags::Elf { p_flags, .. } = segment.flags() else { return false };
        p_flags.0 & PF_W != 0 && svma.wrapping_sub(segment.address()) < segment.size()
    })
}

/// Reads the version from the build information: the text itself, or, before Go 1.18, a pointer to
/// it.
fn version(file: &File<'_>) -> Option<String> {
    const MAGIC: &[u8] = b"\xff Go buildinf:";
    const IS_TEXT: u8 = 2;
    let section = file.section_by_name(".go.buildinfo")?;
    let found = section.data().ok()?;
    let flags = *found.get(15).filter(|_| found.starts_with(MAGIC))?;
    let bytes = if flags & IS_TEXT != 0 {
        let length = *found.get(32)?;
        found.get(33..33 + usize::from(length))?
    } else {
        let at = |svma: u64, bytes: u64| {
            file.segments().find_map(|segment| segment.data_range(svma, bytes).ok().flatten())
        };
        let word = |bytes: &[u8]| bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        let text = at(word(found.get(16..)?)?, 16)?;
        at(word(text)?, word(text.get(8..)?)?.min(64))?
    };
    let text = std::str::from_utf8(bytes).ok()?;
    text.starts_with("go").then(|| text.split(' ').next().unwrap_or_default().to_owned())
}
