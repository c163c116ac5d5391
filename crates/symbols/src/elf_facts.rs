//! Build-id of an ELF file, and location of its debug information.

use std::fs::File;
use std::path::Path;

use heapr_known::machine::SMALLEST_PAGE_BYTES;

use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader as _, SectionHeader as _, SectionTable};
use object::{Endianness, ReadCache};

type Header = FileHeader64<Endianness>;
type Data<'c> = &'c ReadCache<File>;

/// Facts about an ELF file, without its symbols. ([`object::File`] would read the symbol tables
/// too: megabytes for Node.)
#[derive(Debug)]
pub(crate) struct ElfFacts {
    pub(crate) build_id: Vec<u8>,
    pub(crate) has_debug_info: bool,
    /// Name and checksum of the separate debug file.
    pub(crate) debug_link: Option<(Vec<u8>, u32)>,
    /// Name and build-id of the supplementary file.
    pub(crate) alternate: Option<(Vec<u8>, Vec<u8>)>,
}

impl ElfFacts {
    /// Reads the facts of a file; `None` if it does not exist or is not a 64-bit ELF file.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let cache = ReadCache::new(open_regular(path)?);
        let header = Header::parse(&cache).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, &cache).ok()?;
        let content = |name: &[u8]| {
            let (_, section) = sections.section_by_name(endian, name)?;
            section.data(endian, &cache).ok()
        };
        let debug_link = content(b".gnu_debuglink").and_then(|content| {
            let (name, rest) = text_and_rest(content)?;
            let crc: [u8; 4] = rest.get(padding(name.len() + 1)..)?.first_chunk().copied()?;
            Some((
                name.to_vec(),
                if endian == Endianness::Big { u32::from_be_bytes(crc) } else { u32::from_le_bytes(crc) },
            ))
        });
        let alternate = content(b".gnu_debugaltlink").and_then(text_and_rest);
        Some(Self {
            build_id: build_id(header, endian, &cache, &sections).unwrap_or_default(),
            // The second name is the older form of compressed debug information.
            has_debug_info: [&b".debug_info"[..], b".zdebug_info"]
                .iter()
                .any(|name| sections.section_by_name(endian, name).is_some()),
            debug_link,
            alternate: alternate.map(|(name, build_id)| (name.to_vec(), build_id.to_vec())),
        })
    }
}

/// Opens a regular file only: paths come from traces, and opening a pipe could wait for ever.
pub(crate) fn open_regular(path: &Path) -> Option<File> {
    heapr_files::regular(path).ok()
}

/// Address, as the file states it, at which the byte at `offset` of an ELF file is loaded. `None`:
/// the byte is not loaded, or the file is not a 64-bit ELF file.
#[must_use]
pub fn svma_of_offset(path: &Path, offset: u64) -> Option<u64> {
    let cache = ReadCache::new(open_regular(path)?);
    let header = Header::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, &cache).ok()?;
    segments.iter().filter(|segment| segment.p_type(endian) == object::elf::PT_LOAD).find_map(|segment| {
        // A mapping begins with the page in which its segment begins.
        let in_segment = offset.checked_sub(segment.p_offset(endian) & !(SMALLEST_PAGE_BYTES - 1))?;
        (in_segment <= segment.p_filesz(endian)).then_some(())?;
        (segment.p_vaddr(endian) & !(SMALLEST_PAGE_BYTES - 1)).checked_add(in_segment)
    })
}

/// GNU build-id of a 64-bit ELF file; `None` without a build-id, or for another format.
#[must_use]
pub fn build_id_of(path: &Path) -> Option<Vec<u8>> {
    let cache = ReadCache::new(open_regular(path)?);
    let header = Header::parse(&cache).ok()?;
    let endian = header.endian().ok()?;
    build_id(header, endian, &cache, &header.sections(endian, &cache).ok()?)
}

/// Zero-terminated text, and the bytes that follow it.
fn text_and_rest(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = content.iter().position(|&byte| byte == 0)?;
    Some((&content[..end], &content[end + 1..]))
}

/// Number of bytes up to the next multiple of four.
fn padding(bytes: usize) -> usize {
    bytes.next_multiple_of(4) - bytes
}

/// Reads the build-id from the notes of sections, or of segments in a file without sections.
fn build_id<'c>(
    header: &'c Header,
    endian: Endianness,
    data: Data<'c>,
    sections: &SectionTable<'c, Header, Data<'c>>,
) -> Option<Vec<u8>> {
    if sections.is_empty() {
        let segments = header.program_headers(endian, data).ok()?;
        return segments.iter().find_map(|segment| id_among(segment.notes(endian, data).ok()??, endian));
    }
    sections.iter().find_map(|section| id_among(section.notes(endian, data).ok()??, endian))
}

fn id_among(mut notes: NoteIterator<'_, Header>, endian: Endianness) -> Option<Vec<u8>> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
            return Some(note.desc().to_vec());
        }
    }
    None
}
