//! Extents of jemalloc (5.3), read from its page map.
//!
//! ```text
//! entry of a page:  size class | extent's address | state, head, slab in the low bits
//! extent: 0 bits | 8 first address | 16 size, the low twelve bits are something else
//! bits:   12 arena | slab | 4 flags | 3 state | 8 size class | 10 free regions | ...
//! ```

use heapr_glibc_heap::HeapMemory;
use heapr_proc::page_bytes;

use super::heap::{Figure, ForeignHeap, HeapPart, PartKind};
use super::page_map::{PageMap, Shape, candidates};
use super::words;
use crate::subject::Subject;

/// Shape of the page map; extents are aligned to 128 bytes.
const SHAPE: Shape = Shape {
    page_bits: 12,
    root_bits: 18,
    description_avma: |entry| entry & 0xffff_ffff_ff80,
    first_page_word: 1,
    counts_pages: false,
};

/// State of an extent's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Active,
    /// Free, contents retained.
    Dirty,
    /// Free, returned lazily.
    Muzzy,
    /// Free, returned: only the addresses are reserved.
    Retained,
}

/// An extent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    start_avma: u64,
    size_bytes: u64,
    state: State,
    /// Bytes of live blocks in the extent.
    live_bytes: u64,
    is_slab: bool,
}

pub(super) fn find(subject: &Subject, memory: &impl HeapMemory) -> Option<ForeignHeap> {
    let map = PageMap::find(SHAPE, "jemalloc", subject, memory)?;
    let mut places = Vec::new();
    for found in candidates(&subject.mappings) {
        places.extend(map.descriptions(&(found.mapping.start_avma..found.mapping.end_avma), memory));
    }
    places.sort_unstable();
    places.dedup();
    let extents = words::records::<3>(memory, &places);
    let mut extents: Vec<Extent> = extents.into_iter().flatten().filter_map(extent).collect();
    extents.sort_unstable_by_key(|extent| extent.start_avma);
    extents.dedup_by_key(|extent| extent.start_avma);
    let mut heap = ForeignHeap { allocator: "jemalloc", ..ForeignHeap::default() };
    let sum = |of: State| {
        let bytes = extents.iter().filter(|extent| extent.state == of).map(|extent| extent.size_bytes);
        bytes.fold(0, u64::saturating_add)
    };
    let allocated = extents.iter().map(|extent| extent.live_bytes).fold(0, u64::saturating_add);
    heap.figures = [
        ("allocated_bytes", allocated),
        ("active_bytes", sum(State::Active)),
        ("dirty_bytes", sum(State::Dirty)),
        ("muzzy_bytes", sum(State::Muzzy)),
        ("retained_bytes", sum(State::Retained)),
    ]
    .map(|(name, bytes)| Figure { name, bytes })
    .to_vec();
    heap.parts = extents.iter().map(part).collect();
    Some(heap)
}

fn part(extent: &Extent) -> HeapPart {
    let kind = match (extent.state, extent.is_slab) {
        (State::Active, true) => PartKind::SmallBlocks,
        (State::Active, false) => PartKind::Block,
        _ => PartKind::Free,
    };
    // A large block owns all pages of its extent.
    let live_bytes = if kind == PartKind::Block { extent.size_bytes } else { extent.live_bytes };
    HeapPart { range_avma: extent.start_avma..extent.start_avma + extent.size_bytes, kind, live_bytes }
}

/// Decodes an extent from its first words; `None` if they are implausible.
fn extent([bits, block_avma, size]: [u64; 3]) -> Option<Extent> {
    let field = |shift: u32, width: u32| bits >> shift & ((1 << width) - 1);
    let size_bytes = size / page_bytes() * page_bytes();
    let state = match field(17, 3) {
        0 => State::Active,
        1 => State::Dirty,
        2 => State::Muzzy,
        3 => State::Retained,
        // The extent is being changed.
        _ => return None,
    };
    // Large blocks begin somewhere in their first page, to spread over cache sets.
    let start_avma = block_avma / page_bytes() * page_bytes();
    let is_extent = start_avma > 0
        && size_bytes > 0
        && start_avma.checked_add(size_bytes).is_some_and(|end_avma| end_avma < words::END_AVMA);
    if !is_extent {
        return None;
    }
    let (is_slab, free_regions) = (field(12, 1) == 1, field(28, 10));
    let live_bytes = match (state, class_bytes(field(20, 8))?) {
        (State::Active, region_bytes) if is_slab => {
            (size_bytes / region_bytes).checked_sub(free_regions)? * region_bytes
        }
        (State::Active, block_bytes) => block_bytes.min(size_bytes),
        _ => 0,
    };
    let is_slab = is_slab && state == State::Active;
    Some(Extent { start_avma, size_bytes, state, live_bytes, is_slab })
}

/// Size of a class: 8, four steps of 16, then four classes per doubling. A free extent may have the
/// number behind the last.
fn class_bytes(class: u64) -> Option<u64> {
    const CLASSES: u64 = 232;
    match class {
        0 => Some(8),
        1..=4 => Some(class * 16),
        5..=CLASSES => {
            let (doubling, step) = ((class - 5) / 4, (class - 5) % 4 + 1);
            let base = 1_u64.checked_shl(6 + doubling as u32)?;
            base.checked_add(base / 4 * step)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_jemalloc() {
        let sizes: Vec<u64> = [0, 1, 4, 5, 8, 9, 28, 39].into_iter().filter_map(class_bytes).collect();
        assert_eq!(sizes, [8, 16, 64, 80, 128, 160, 4096, 28 << 10]);
        assert_eq!(class_bytes(233), None);
    }

    #[test]
    fn a_slab_has_what_is_not_free_of_its_regions() {
        let bits = 1 << 12 | 5 << 20 | 41 << 28;
        let found = extent([bits, 0x7f00_0000_0000, 20480 | 7]).unwrap();
        assert_eq!((found.size_bytes, found.live_bytes), (20480, (256 - 41) * 80));
        assert_eq!(extent([bits | 4 << 17, 0x7f00_0000_0000, 20480]), None);
        assert_eq!(extent([1 << 12 | 5 << 20 | 1023 << 28, 0x7f00_0000_0000, 4096]), None);
        let large = extent([33 << 20, 0x7f00_0000_0440, 12288]).unwrap();
        assert_eq!((large.start_avma, large.live_bytes), (0x7f00_0000_0000, 8192 + 2048));
        assert_eq!(extent([0, u64::MAX - 4095, u64::MAX]), None);
    }
}
