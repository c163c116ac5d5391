//! Segments of mimalloc (2.0): 32 MiB each, with a table of slices of 64 KiB.
//!
//! ```text
//! segment: ... 224 slices | 232 slices of this header | ... 264 table
//! entry:   0 u32 slices | 4 u32 0 | 10 u16 blocks made | 12 u16 room for | 24 u32 in use | 28 u32 size
//! ```

use heapr_glibc_heap::HeapMemory;
use heapr_proc::smaps::MappingPages;

use super::belief::any_module_has;
use super::heap::{Figure, ForeignHeap, HeapPart, PartKind};
use super::page_map::candidates;
use super::words;
use crate::subject::Subject;

const SEGMENT_BYTES: u64 = 32 << 20;
const SLICE_BYTES: u64 = 64 << 10;
const SLICES_WORD: usize = 224 / 8;
const HEADER_SLICES_WORD: usize = 232 / 8;
const TABLE_WORD: usize = 264 / 8;
const ENTRY_WORDS: usize = 80 / 8;
const SLICES: usize = 512;

pub(super) fn find(subject: &Subject, memory: &impl HeapMemory) -> Option<ForeignHeap> {
    let mut heap = ForeignHeap { allocator: "mimalloc", ..ForeignHeap::default() };
    let mut segment_bytes = 0_u64;
    for found in candidates(&subject.mappings) {
        let mapping = &found.mapping;
        // Memory that a segment returned to the kernel may have become a mapping of its own.
        let end_avma = end_of_run(&subject.mappings, mapping.end_avma);
        let mut segment_avma = mapping.start_avma.next_multiple_of(SEGMENT_BYTES);
        while segment_avma < mapping.end_avma && segment_avma + SEGMENT_BYTES <= end_avma {
            let found = segment(segment_avma, end_avma, memory);
            let bytes = found.as_ref().map_or(SEGMENT_BYTES, |(bytes, _)| *bytes);
            if let Some((bytes, parts)) = found {
                segment_bytes = segment_bytes.saturating_add(bytes);
                heap.parts.extend(parts);
            }
            segment_avma = segment_avma.saturating_add(bytes.next_multiple_of(SEGMENT_BYTES));
        }
    }
    let sum = |kind: fn(PartKind) -> bool, of: fn(&HeapPart) -> u64| {
        heap.parts.iter().filter(|part| kind(part.kind)).map(of).fold(0, u64::saturating_add)
    };
    let length = |part: &HeapPart| part.range_avma.end - part.range_avma.start;
    let figures = [
        ("allocated_bytes", sum(|_| true, |part| part.live_bytes)),
        ("pages_bytes", sum(|kind| matches!(kind, PartKind::Block | PartKind::SmallBlocks), length)),
        ("free_pages_bytes", sum(|kind| kind == PartKind::Free, length)),
        ("segments_bytes", segment_bytes),
    ];
    heap.figures = figures.map(|(name, bytes)| Figure { name, bytes }).to_vec();
    // No pointer leads from a module to the segments: any module may contain mimalloc.
    (!heap.parts.is_empty() && any_module_has(subject, "mimalloc", memory)).then_some(heap)
}

/// Exclusive end of the run of anonymous mappings that continues at `end_avma`.
fn end_of_run(mappings: &[MappingPages], end_avma: u64) -> u64 {
    let first = mappings.partition_point(|found| found.mapping.start_avma < end_avma);
    let following = mappings.get(first..).unwrap_or_default().iter().map(|found| &found.mapping);
    following
        .take_while(|mapping| mapping.inode == 0 && mapping.name.is_empty())
        .fold(end_avma, |end, mapping| if mapping.start_avma == end { mapping.end_avma } else { end })
}

/// Bytes and parts of a segment; `None` if its table does not cover it.
fn segment(segment_avma: u64, end_avma: u64, memory: &impl HeapMemory) -> Option<(u64, Vec<HeapPart>)> {
    let words = words::run(memory, segment_avma, TABLE_WORD + ENTRY_WORDS);
    let slices = usize::try_from(*words.get(SLICES_WORD)?).ok()?;
    let header_slices = usize::try_from(*words.get(HEADER_SLICES_WORD)?).ok()?;
    let bytes = u64::try_from(slices).ok()?.checked_mul(SLICE_BYTES)?;
    let is_segment = slices >= SLICES
        && (1..16).contains(&header_slices)
        && segment_avma.checked_add(bytes).is_some_and(|end| end <= end_avma)
        && words.get(TABLE_WORD)? & 0xffff_ffff == header_slices as u64;
    if !is_segment {
        return None;
    }
    let words = words::run(memory, segment_avma, TABLE_WORD + SLICES * ENTRY_WORDS);
    let mut parts = Vec::new();
    let mut at = 0;
    while at < slices {
        let entry = words.get(TABLE_WORD + at.min(SLICES) * ENTRY_WORDS..)?.get(..ENTRY_WORDS)?;
        let (count, offset) = (entry[0] & 0xffff_ffff, entry[0] >> 32);
        let next = at.checked_add(usize::try_from(count).ok()?)?;
        if count == 0 || offset != 0 || next > slices {
            return None;
        }
        let start_avma = segment_avma + at as u64 * SLICE_BYTES;
        let range_avma = start_avma..start_avma + count * SLICE_BYTES;
        let (kind, live_bytes) = if at == 0 { (PartKind::Own, 0) } else { page(entry, count * SLICE_BYTES)? };
        parts.push(HeapPart { range_avma, kind, live_bytes });
        at = next;
    }
    Some((bytes, parts))
}

/// Kind and live bytes of a page of blocks; `None` if its entry is implausible.
fn page(entry: &[u64], bytes: u64) -> Option<(PartKind, u64)> {
    let (made, room) = (entry[1] >> 16 & 0xffff, entry[1] >> 32 & 0xffff);
    let (used, size) = (entry[3] & 0xffff_ffff, entry[3] >> 32);
    if size <= 1 || used == 0 {
        return Some((PartKind::Free, 0));
    }
    // Size field of a single block that is too large for the field: the page's size counts.
    const LARGEST: u64 = 1 << 31;
    let live_bytes = if room == 1 && size >= LARGEST { bytes } else { used.checked_mul(size)? };
    let is_page = used <= made && made <= room && live_bytes <= bytes;
    let kind = if room == 1 { PartKind::Block } else { PartKind::SmallBlocks };
    is_page.then_some((kind, live_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_mappings_ends_at_a_file_and_where_nothing_is_mapped() {
        let text = "1000-2000 rw-p 00000000 00:00 0 \n2000-3000 ---p 00000000 00:00 0 \n\
                    3000-4000 rw-p 00000000 00:00 0 \n5000-6000 rw-p 00000000 00:00 0 \n\
                    6000-7000 rw-p 00000000 fe:00 7 /lib/x\n7000-8000 rw-p 00000000 00:00 0 \n";
        let mappings = heapr_proc::smaps::parse(text.as_bytes()).unwrap();
        assert_eq!(end_of_run(&mappings, 0x2000), 0x4000);
        assert_eq!(end_of_run(&mappings, 0x4000), 0x4000);
        assert_eq!(end_of_run(&mappings, 0x6000), 0x6000);
        assert_eq!(end_of_run(&mappings, 0x8000), 0x8000);
    }

    #[test]
    fn a_page_with_more_blocks_than_it_has_room_for_is_none() {
        let entry =
            |made: u64, room: u64, used: u64, size: u64| [1, made << 16 | room << 32, 0, used | size << 32];
        assert_eq!(page(&entry(203, 203, 58, 320), 65536), Some((PartKind::SmallBlocks, 58 * 320)));
        assert_eq!(page(&entry(203, 203, 204, 320), 65536), None);
        assert_eq!(page(&entry(300, 300, 300, 320), 65536), None);
        assert_eq!(page(&entry(0, 0, 0, 0), 65536), Some((PartKind::Free, 0)));
        assert_eq!(page(&entry(1, 1, 1, 100_000), 131_072), Some((PartKind::Block, 100_000)));
    }
}
