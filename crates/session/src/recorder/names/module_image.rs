//! Builds a file from the mapped header and segments of a module whose file is gone, without
//! sections.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use rustix::fs::{MemfdFlags, memfd_create};

/// Largest number of bytes copied per module.
const IMAGE_BYTES_MAX: u64 = 64 << 20;
const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const SEGMENTS_MAX: usize = 64;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
/// Tags of the dynamic segment whose addresses the loader relocates in memory: hash tables,
/// strings, symbols.
const ADDRESS_TAGS: [u64; 4] = [4, 5, 6, 0x6fff_fef5];

/// Segment, as in the program header.
#[derive(Clone, Copy)]
struct Segment {
    kind: u32,
    offset: u64,
    svma: u64,
    file_bytes: u64,
}

/// Returns an image of the module that begins at `start_avma`; `None` if it cannot be read, or is
/// not a 64-bit ELF file.
pub(crate) fn of_process(pid: u32, start_avma: u64, bias_avma: u64) -> Option<File> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut header = [0; HEADER_BYTES];
    memory.read_exact_at(&mut header, start_avma).ok()?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table_offset = word(&header, 32)?;
    let count = usize::from(u16::from_le_bytes([header[56], header[57]]));
    if count > SEGMENTS_MAX || usize::from(u16::from_le_bytes([header[54], header[55]])) != SEGMENT_BYTES {
        return None;
    }
    let mut table = vec![0; count * SEGMENT_BYTES];
    memory.read_exact_at(&mut table, start_avma.checked_add(table_offset)?).ok()?;
    let segments: Vec<Segment> = table.chunks_exact(SEGMENT_BYTES).filter_map(segment).collect();
    let image = File::from(memfd_create("heapr module", MemfdFlags::CLOEXEC).ok()?);
    let mut left = IMAGE_BYTES_MAX;
    for loaded in segments.iter().filter(|segment| segment.kind == PT_LOAD) {
        left = left.checked_sub(loaded.file_bytes)?;
        copy(&memory, bias_avma.wrapping_add(loaded.svma), &image, loaded.offset, loaded.file_bytes).ok()?;
    }
    // The image has no sections, so the header must not refer to any.
    header[40..48].fill(0);
    header[60..64].fill(0);
    image.write_all_at(&header, 0).ok()?;
    for dynamic in segments.iter().filter(|segment| segment.kind == PT_DYNAMIC) {
        let mut entries = vec![0; usize::try_from(dynamic.file_bytes.min(1 << 16)).ok()?];
        image.read_exact_at(&mut entries, dynamic.offset).ok()?;
        for entry in entries.chunks_exact_mut(16) {
            let (tag, value) = (word(entry, 0)?, word(entry, 8)?);
            if ADDRESS_TAGS.contains(&tag) && bias_avma != 0 && value >= bias_avma {
                entry[8..].copy_from_slice(&(value - bias_avma).to_le_bytes());
            }
        }
        image.write_all_at(&entries, dynamic.offset).ok()?;
    }
    Some(image)
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn segment(entry: &[u8]) -> Option<Segment> {
    let kind = entry.get(..4)?.try_into().ok().map(u32::from_le_bytes)?;
    Some(Segment { kind, offset: word(entry, 8)?, svma: word(entry, 16)?, file_bytes: word(entry, 32)? })
}

fn copy(memory: &File, mut from_avma: u64, image: &File, mut to: u64, bytes: u64) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut left = bytes;
    while left > 0 {
        let part = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        memory.read_exact_at(&mut buffer[..part], from_avma)?;
        image.write_all_at(&buffer[..part], to)?;
        from_avma = from_avma.wrapping_add(part as u64);
        to = to.wrapping_add(part as u64);
        left -= part as u64;
    }
    Ok(())
}
