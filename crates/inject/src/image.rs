//! Memory image of the agent's shared object, laid out by the injector instead of the target's
//! loader.
//!
//! The loader would need the target's allocator and locks, which a stopped thread may hold. It
//! would also occupy static TLS for good, and would have to find a file. Only files of heapr's own
//! build are accepted.

use std::collections::BTreeMap;

use heapr_known::machine::HERE;
use heapr_proc::page_bytes;
use object::LittleEndian as LE;
use object::elf::{self, FileHeader64};
use object::read::elf::{
    FileHeader as _, ProgramHeader as _, Rela as _, SectionHeader as _, SectionTable, Sym as _, SymbolTable,
};

use crate::arch::RelocationKind;
use crate::error::{Error, Result};

/// A part of the image with its protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Page-aligned offset in the image.
    pub(crate) offset: u64,
    /// Size in bytes, whole pages.
    pub(crate) bytes: u64,
    pub(crate) is_executable: bool,
    pub(crate) is_writable: bool,
}

/// The image, relocated for one address.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    pub(crate) segments: Vec<Segment>,
    exports: BTreeMap<String, u64>,
    relocations: Vec<Relocation>,
}

#[derive(Debug)]
struct Relocation {
    offset: u64,
    kind: u32,
    symbol: String,
    /// Whether the agent can do without the symbol: it uses it only when the loader loads it.
    is_weak: bool,
    addend: i64,
}

type Header = FileHeader64<LE>;
type Sections<'d> = SectionTable<'d, Header>;
type Symbols<'d> = SymbolTable<'d, Header>;

/// Largest address in the file.
const IMAGE_BYTES_MAX: u64 = 64 << 20;

const DAMAGED: Error = Error::BadAgent { what: "an offset lies outside of it" };

/// The fault of a file whose parts cannot be read.
fn damaged(_: object::Error) -> Error {
    DAMAGED
}

impl Image {
    /// Lays out the segments of the file.
    pub(crate) fn load(file: &[u8]) -> Result<Self> {
        const OTHER: Error = Error::BadAgent { what: "it is no shared object for this processor" };
        let header = Header::parse(file).map_err(|_| OTHER)?;
        let is_for_here = header.endian().is_ok() && header.e_machine(LE) == elf::Machine(HERE.elf_number);
        if !is_for_here {
            return Err(OTHER);
        }
        let mut segments = Vec::new();
        let mut loads = Vec::new();
        for header in header.program_headers(LE, file).map_err(damaged)? {
            let (svma, memory_bytes) = (header.p_vaddr(LE), header.p_memsz(LE));
            if svma.saturating_add(memory_bytes) > IMAGE_BYTES_MAX || header.p_filesz(LE) > memory_bytes {
                return Err(DAMAGED);
            }
            if header.p_type(LE) == elf::PT_LOAD {
                let offset = svma & !(page_bytes() - 1);
                let bytes = (svma + memory_bytes).next_multiple_of(page_bytes()) - offset;
                let flags = header.p_flags(LE);
                let (is_executable, is_writable) = (flags.contains(elf::PF_X), flags.contains(elf::PF_W));
                segments.push(Segment { offset, bytes, is_executable, is_writable });
                loads.push((svma, header.data(LE, file).map_err(|()| DAMAGED)?));
            }
        }
        let end = segments.iter().map(|segment| segment.offset + segment.bytes).max().ok_or(DAMAGED)?;
        let mut bytes = vec![0; usize::try_from(end).map_err(|_| DAMAGED)?];
        for (svma, content) in loads {
            let start = usize::try_from(svma).map_err(|_| DAMAGED)?;
            bytes.get_mut(start..start + content.len()).ok_or(DAMAGED)?.copy_from_slice(content);
        }
        let sections = header.sections(LE, file).map_err(damaged)?;
        let symbols = sections.symbols(LE, file, elf::SHT_DYNSYM).map_err(damaged)?;
        if symbols.is_empty() {
            return Err(Error::BadAgent { what: "it has no dynamic symbols" });
        }
        let relocations = relocations_of(file, &sections, &symbols)?;
        Ok(Self { bytes, segments, exports: exports_of(&symbols)?, relocations })
    }

    /// Names of the functions that the agent needs from the target.
    pub(crate) fn imports(&self) -> Vec<String> {
        let needed = self.relocations.iter().filter(|relocation| !relocation.is_weak);
        let names = needed.map(|relocation| relocation.symbol.as_str());
        let mut names: Vec<String> = names
            .filter(|name| !name.is_empty() && !self.exports.contains_key(*name))
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Offset of an exported name.
    pub(crate) fn export(&self, name: &str) -> Option<u64> {
        self.exports.get(name).copied()
    }

    /// Applies the relocations: the image will lie at `base_avma`, its thread slot at
    /// `tls_offset` from the thread pointer.
    pub(crate) fn relocate(
        &mut self,
        base_avma: u64,
        tls_offset: i64,
        import: impl Fn(&str) -> Option<u64>,
    ) -> Result<()> {
        for relocation in &self.relocations {
            let symbol = || -> Result<u64> {
                let own = self.exports.get(&relocation.symbol).map(|offset| base_avma.wrapping_add(*offset));
                own.or_else(|| if relocation.is_weak { Some(0) } else { import(&relocation.symbol) })
                    .ok_or_else(|| Error::MissingFunction { name: relocation.symbol.clone() })
            };
            let value = match RelocationKind::of(relocation.kind) {
                Some(RelocationKind::Relative) => base_avma.wrapping_add_signed(relocation.addend),
                Some(RelocationKind::Absolute) => symbol()?.wrapping_add_signed(relocation.addend),
                Some(RelocationKind::Slot) => symbol()?,
                // The agent has one thread-local word, so the addend is 0.
                Some(RelocationKind::ThreadOffset) => tls_offset.cast_unsigned(),
                None => return Err(Error::BadAgent { what: "it has a relocation of an unknown kind" }),
            };
            set(&mut self.bytes, relocation.offset, value)?;
        }
        Ok(())
    }

    /// Reads a word of the image.
    pub(crate) fn word(&self, offset: u64) -> Result<u64> {
        Ok(u64::from_le_bytes(self.part(offset, 8)?.try_into().map_err(|_| DAMAGED)?))
    }

    /// Changes a word of the image.
    pub(crate) fn set_word(&mut self, offset: u64, value: u64) -> Result<()> {
        set(&mut self.bytes, offset, value)
    }

    /// Returns bytes of the image.
    pub(crate) fn part(&self, offset: u64, count: u64) -> Result<&[u8]> {
        self.bytes.get(range(offset, count)?).ok_or(DAMAGED)
    }
}

fn range(offset: u64, count: u64) -> Result<std::ops::Range<usize>> {
    let start = usize::try_from(offset).map_err(|_| DAMAGED)?;
    let end = start.checked_add(usize::try_from(count).map_err(|_| DAMAGED)?).ok_or(DAMAGED)?;
    Ok(start..end)
}

fn set(bytes: &mut [u8], offset: u64, value: u64) -> Result<()> {
    bytes.get_mut(range(offset, 8)?).ok_or(DAMAGED)?.copy_from_slice(&value.to_le_bytes());
    Ok(())
}

/// Offsets of the names that other modules can use.
fn exports_of(symbols: &Symbols<'_>) -> Result<BTreeMap<String, u64>> {
    let mut exports = BTreeMap::new();
    for symbol in symbols.iter() {
        if !symbol.is_undefined(LE) && !symbol.is_local() {
            exports.insert(name_of(symbols, symbol)?, symbol.st_value(LE));
        }
    }
    Ok(exports)
}

fn relocations_of(file: &[u8], sections: &Sections<'_>, symbols: &Symbols<'_>) -> Result<Vec<Relocation>> {
    let mut relocations = Vec::new();
    for section in sections.iter() {
        // Relocations of sections that are not loaded are those of debug information.
        if !section.sh_flags(LE).contains(elf::SHF_ALLOC) {
            continue;
        }
        let Some((list, table)) = section.rela(LE, file).map_err(damaged)? else { continue };
        for relocation in list {
            let symbol = relocation.symbol(LE, false);
            if symbol.is_some() && table != symbols.section() {
                return Err(DAMAGED);
            }
            let symbol = symbol.map(|index| symbols.symbol(index)).transpose().map_err(damaged)?;
            relocations.push(Relocation {
                offset: relocation.r_offset(LE),
                kind: relocation.r_type(LE, false).0,
                symbol: symbol.map_or(Ok(String::new()), |symbol| name_of(symbols, symbol))?,
                is_weak: symbol.is_some_and(|symbol| symbol.is_weak()),
                addend: relocation.r_addend(LE),
            });
        }
    }
    Ok(relocations)
}

fn name_of(symbols: &Symbols<'_>, symbol: &elf::Sym64<LE>) -> Result<String> {
    let name = symbol.name(LE, symbols.strings()).map_err(damaged)?;
    Ok(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// File of the C library of this process.
    fn library() -> Vec<u8> {
        let mappings = heapr_proc::mappings::read(std::process::id()).unwrap();
        let is_library = |name: &str| name.contains("/libc.so") || name.contains("/ld-musl");
        let library = mappings.iter().find(|mapping| is_library(&mapping.name)).unwrap();
        std::fs::read(&library.name).unwrap()
    }

    /// The loader of this process is the oracle.
    #[test]
    fn an_image_has_what_the_loader_has() {
        let image = Image::load(&library()).unwrap();
        let distance = image.export("free").unwrap().wrapping_sub(image.export("malloc").unwrap());
        let loaded = (libc::free as *const () as u64).wrapping_sub(libc::malloc as *const () as u64);
        assert_eq!(distance, loaded);
        assert!(!image.relocations.is_empty());
        let code = image.segments.iter().find(|segment| segment.is_executable).unwrap();
        assert!(!code.is_writable);
        let at = image.export("malloc").unwrap();
        assert!((code.offset..code.offset + code.bytes).contains(&at));
        // SAFETY: the code of a function of at least 16 bytes.
        let now = unsafe { std::slice::from_raw_parts(libc::malloc as *const u8, 16) };
        assert_eq!(image.part(at, 16).unwrap(), now);
        assert!(image.part(u64::MAX, 8).is_err() && image.word(image.bytes.len() as u64 - 7).is_err());
    }

    #[test]
    fn a_damaged_file_is_an_error_or_an_image() {
        let whole = library();
        for bytes in [0, 10, 63, 64, 100, 1000, whole.len() / 2, whole.len() - 1] {
            assert!(Image::load(&whole[..bytes]).is_err(), "{bytes} bytes");
        }
        // Each byte of the headers, with values that make sizes and offsets large.
        for at in 0..64 + 56 * 4 {
            for value in [0xff, 0] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Ok(mut image) = Image::load(&changed) {
                    assert!(image.bytes.len() as u64 <= IMAGE_BYTES_MAX + page_bytes());
                    let _ = image.relocate(0x1000, -8, |_| Some(0));
                }
            }
        }
    }
}
