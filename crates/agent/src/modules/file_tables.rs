//! Unwind tables that only a module's file shows: a `.debug_frame`, which the loader does not map,
//! and an `.eh_frame` without the header that locates it. They are searched once per module, when a
//! frame of it has no other tables.
//!
//! A `.debug_frame` is copied: if a mapped file were truncated by another process, an access to the
//! missing pages would kill the program. A compressed one, or one in a separate file, is not read.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heapr_ring::sys;

use super::found::Found;
use crate::unwind::frame_index::FrameIndex;
use crate::unwind::section_index::ToIndex;
use crate::unwind::{Form, SEGMENTS_MAX, UnwindTables};

/// Largest section that is read, and largest sum of all copies and indexes of a process, in bytes.
const SECTION_BYTES_MAX: usize = 64 << 20;
const ALL_BYTES_MAX: usize = 256 << 20;
const SECTIONS_MAX: usize = 4096;
const SECTION_HEADER_BYTES: usize = 64;

static ALL_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Unwind tables that were found, in memory that is never unmapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileTables {
    sections: [Option<Indexed>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Indexed {
    form: Form,
    index: FrameIndex,
    /// Address range of a copied section, or of the mapped one.
    range: (usize, usize),
}

impl FileTables {
    /// Returns the tables that describe an address of the module `found`, to which `self` belongs.
    pub(super) fn describing(&self, found: &Found, lookup_avma: usize) -> Option<UnwindTables> {
        let of_section = |indexed: &Indexed| {
            let tables =
                UnwindTables::of_section(indexed.form, indexed.index, &segments(found, indexed.range));
            tables.describes(lookup_avma).then_some(tables)
        };
        self.sections.iter().flatten().find_map(of_section)
    }

    /// Reads the tables of a module's file; `None` if the file lacks both or cannot be read.
    #[cold]
    #[inline(never)]
    pub(super) fn read(found: &Found) -> Option<&'static Self> {
        let file = File::open(found)?;
        let (mut eh_frame, mut debug_frame) = (None, None);
        file.for_each_section(&mut |name, section| match name {
            b".eh_frame\0" if found.eh_frame_hdr == 0 => eh_frame = Some(section),
            b".debug_frame\0" if !section.is_compressed => debug_frame = Some(section),
            _ => {}
        });
        let debug_frame = debug_frame.and_then(|section| {
            let (memory, bytes) = file.copy(section)?;
            let form = Form { debug_frame: memory, bias: found.bias, ..Form::EH_FRAME };
            index(found, form, (memory, memory.wrapping_add(bytes)))
        });
        let eh_frame = eh_frame.and_then(|section| {
            let begin = found.bias.wrapping_add(section.address_svma);
            let end = begin.wrapping_add(section.bytes);
            let is_mapped =
                segments(found, (0, 0)).iter().any(|&(low, high)| begin >= low && begin < end && end <= high);
            is_mapped.then(|| index(found, Form::EH_FRAME, (begin, end)))?
        });
        if eh_frame.is_none() && debug_frame.is_none() {
            return None;
        }
        let place = map(size_of::<Self>())?.cast::<Self>();
        // SAFETY: a fresh mapping, large enough and aligned, that is never unmapped.
        unsafe {
            place.write(Self { sections: [eh_frame, debug_frame] });
            Some(&*place)
        }
    }
}

/// Returns the readable segments of a module, and one more range before them.
fn segments(found: &Found, more: (usize, usize)) -> [(usize, usize); SEGMENTS_MAX] {
    let mut segments = [(0, 0); SEGMENTS_MAX];
    for (place, segment) in segments.iter_mut().zip(core::iter::once(more).chain(found.readable_segments())) {
        *place = segment;
    }
    segments
}

fn index(found: &Found, form: Form, range: (usize, usize)) -> Option<Indexed> {
    let segments = segments(found, range);
    let to_index = ToIndex { begin: range.0, end: range.1, form, segments: &segments };
    let bytes = to_index.index_bytes();
    if bytes == 0 {
        return None;
    }
    let memory = map(bytes)?;
    // SAFETY: a fresh mapping of so many bytes, which is never unmapped.
    let index = unsafe { to_index.index_in(memory, bytes) };
    Some(Indexed { form, index, range })
}

/// Maps memory that is never unmapped, unless the sum of all would exceed [`ALL_BYTES_MAX`].
fn map(bytes: usize) -> Option<*mut u8> {
    if ALL_BYTES.fetch_add(bytes, Relaxed).saturating_add(bytes) > ALL_BYTES_MAX {
        ALL_BYTES.fetch_sub(bytes, Relaxed);
        return None;
    }
    sys::map_anonymous(bytes, false).ok()
}

/// A section, according to its header.
#[derive(Clone, Copy)]
struct Section {
    address_svma: usize,
    offset: usize,
    bytes: usize,
    is_compressed: bool,
}

struct File {
    descriptor: sys::Descriptor,
    section_headers: usize,
    section_count: usize,
    names: usize,
}

impl File {
    /// Opens the file of a module, if it is the file that is mapped: its program headers must be
    /// equal.
    fn open(found: &Found) -> Option<Self> {
        let path = found.path_with_end();
        let path = if path.len() <= 1 { b"/proc/self/exe\0" } else { path };
        let descriptor = sys::open(path, false).ok()?;
        let mut file = Self { descriptor, section_headers: 0, section_count: 0, names: 0 };
        let head: [u8; 64] = file.bytes(0)?;
        if !head.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let program_headers = word(&head, 32)?;
        let mapped = found.program_headers();
        if half(&head, 56)? != mapped.len() || mapped.is_empty() {
            return None;
        }
        for (number, header) in mapped.iter().enumerate() {
            let bytes: [u8; 56] = file.bytes(program_headers.checked_add(number.checked_mul(56)?)?)?;
            let is_same = word(&bytes, 8)? == header.file_off as usize
                && word(&bytes, 16)? == header.address_svma
                && word(&bytes, 40)? == header.memory_bytes;
            if !is_same {
                return None;
            }
        }
        file.section_headers = word(&head, 40)?;
        file.section_count = half(&head, 60)?.min(SECTIONS_MAX);
        if half(&head, 58)? != SECTION_HEADER_BYTES || file.section_count == 0 {
            return None;
        }
        file.names = file.section(half(&head, 62)?)?.1.offset;
        Some(file)
    }

    /// Reads `N` bytes from an offset of the file on.
    fn bytes<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        (self.fill(&mut bytes, offset)? == N).then_some(bytes)
    }

    /// Reads until the buffer is full or the file ends, and returns the number of bytes read.
    fn fill(&self, buffer: &mut [u8], offset: usize) -> Option<usize> {
        let mut filled = 0_usize;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match sys::read_at(&self.descriptor, rest, offset.checked_add(filled)?) {
                Ok(0) => break,
                Ok(count) => filled = filled.wrapping_add(count),
                Err(sys::EINTR) => {}
                Err(_) => return None,
            }
        }
        Some(filled)
    }

    /// Reads a section's header: the offset of its name, and the rest.
    fn section(&self, number: usize) -> Option<(usize, Section)> {
        const COMPRESSED: usize = 0x800;
        let at = self.section_headers.checked_add(number.checked_mul(SECTION_HEADER_BYTES)?)?;
        let header: [u8; SECTION_HEADER_BYTES] = self.bytes(at)?;
        let name = u32::from_le_bytes(header.get(..4)?.try_into().ok()?) as usize;
        let section = Section {
            address_svma: word(&header, 16)?,
            offset: word(&header, 24)?,
            bytes: word(&header, 32)?,
            is_compressed: word(&header, 8)? & COMPRESSED != 0,
        };
        Some((name, section))
    }

    /// Calls `visit` with each section and its name, which includes the final zero (empty if the
    /// name is too long).
    fn for_each_section(&self, visit: &mut dyn FnMut(&[u8], Section)) {
        for number in 0..self.section_count {
            let Some((name, section)) = self.section(number) else { return };
            let mut text = [0; 16];
            let Some(count) = self.names.checked_add(name).and_then(|offset| self.fill(&mut text, offset))
            else {
                continue;
            };
            let text = text.get(..count).unwrap_or_default();
            let end = text.iter().position(|&byte| byte == 0).map_or(0, |end| end.wrapping_add(1));
            visit(text.get(..end).unwrap_or_default(), section);
        }
    }

    /// Copies a section; returns the copy's address and its number of bytes.
    fn copy(&self, section: Section) -> Option<(usize, usize)> {
        if section.bytes == 0 || section.bytes > SECTION_BYTES_MAX {
            return None;
        }
        let memory = map(section.bytes)?;
        // SAFETY: a fresh mapping of so many bytes.
        let bytes = unsafe { core::slice::from_raw_parts_mut(memory, section.bytes) };
        let is_whole = self.fill(bytes, section.offset) == Some(section.bytes);
        is_whole.then_some((memory as usize, section.bytes))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
    Some(u64::from_le_bytes(bytes) as usize)
}

fn half(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(2)?)?.try_into().ok()?;
    Some(usize::from(u16::from_le_bytes(bytes)))
}
