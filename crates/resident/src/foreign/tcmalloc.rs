//! Spans of tcmalloc (gperftools), read from its page map.
//!
//! ```text
//! span: 0 first page | 8 pages | 16, 24 neighbours | 32 free blocks | 40 u16 blocks out, u8 class, 2 bits where
//! ```

use heapr_glibc_heap::HeapMemory;

use super::class_sizes::ClassSizes;
use super::heap::{Figure, ForeignHeap, HeapPart, PartKind};
use super::page_map::{PageMap, Shape, candidates};
use super::{thread_lists, words};
use crate::subject::Subject;

const PAGE_BITS: u32 = 13;

const SHAPE: Shape = Shape {
    page_bits: PAGE_BITS,
    root_bits: 17,
    description_avma: |entry| entry,
    first_page_word: 0,
    counts_pages: true,
};

/// State of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    InUse,
    /// Free, contents retained.
    Free,
    /// Free, returned to the kernel.
    Returned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    first_page: u64,
    pages: u64,
    place: Place,
    /// Size class of small blocks; 0 for a large block.
    class: usize,
    out: u64,
}

pub(super) fn find(subject: &Subject, memory: &impl HeapMemory) -> Option<ForeignHeap> {
    let map = PageMap::find(SHAPE, "tcmalloc", subject, memory)?;
    let data_bytes = map.data_avma.end - map.data_avma.start;
    let data = words::run(memory, map.data_avma.start, (data_bytes / 8) as usize);
    let sizes = ClassSizes::find(&data)?;
    let mut places = Vec::new();
    for found in candidates(&subject.mappings) {
        places.extend(map.descriptions(&(found.mapping.start_avma..found.mapping.end_avma), memory));
    }
    places.sort_unstable();
    places.dedup();
    let mut spans: Vec<Span> =
        words::records::<6>(memory, &places).into_iter().flatten().filter_map(span).collect();
    spans.sort_unstable_by_key(|span| span.first_page);
    spans.dedup_by_key(|span| span.first_page);
    let parts: Vec<HeapPart> = spans.iter().filter_map(|span| part(span, &sizes)).collect();
    let of_place = |place: Place| {
        let spans = spans.iter().filter(|span| span.place == place);
        spans.map(|span| span.pages << PAGE_BITS).fold(0, u64::saturating_add)
    };
    let caches = thread_lists::in_caches(&data, &sizes, memory)?;
    let slots = thread_lists::in_slots(&data, &sizes)?;
    let out: u64 = parts.iter().map(|part| part.live_bytes).fold(0, u64::saturating_add);
    let mut heap = ForeignHeap { allocator: "tcmalloc", parts, ..ForeignHeap::default() };
    let allocated = out.saturating_sub(caches.saturating_add(slots));
    heap.figures = [
        ("allocated_bytes", allocated),
        ("thread_cache_bytes", caches),
        ("transfer_cache_bytes", slots),
        ("central_cache_bytes", of_place(Place::InUse).saturating_sub(out)),
        ("page_heap_free_bytes", of_place(Place::Free)),
        ("page_heap_unmapped_bytes", of_place(Place::Returned)),
    ]
    .map(|(name, bytes)| Figure { name, bytes })
    .to_vec();
    heap.take_cached(caches.saturating_add(slots));
    Some(heap)
}

fn span([first_page, pages, _, _, _, bits]: [u64; 6]) -> Option<Span> {
    let end = first_page.checked_add(pages)?;
    let place = match bits >> 24 & 3 {
        0 => Place::InUse,
        1 => Place::Free,
        2 => Place::Returned,
        _ => return None,
    };
    let is_span = first_page > 0 && pages > 0 && end < words::END_AVMA >> PAGE_BITS;
    is_span.then_some(Span {
        first_page,
        pages,
        place,
        class: (bits >> 16 & 0xff) as usize,
        out: bits & 0xffff,
    })
}

fn part(span: &Span, sizes: &ClassSizes) -> Option<HeapPart> {
    let bytes = span.pages << PAGE_BITS;
    let start_avma = span.first_page << PAGE_BITS;
    let (kind, live_bytes) = match (span.place, span.class) {
        (Place::InUse, 0) => (PartKind::Block, bytes),
        (Place::InUse, class) => (PartKind::SmallBlocks, sizes.of(class)?.checked_mul(span.out)?.min(bytes)),
        _ => (PartKind::Free, 0),
    };
    Some(HeapPart { range_avma: start_avma..start_avma + bytes, kind, live_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_that_makes_no_sense_is_none() {
        let bits = 12 | 5 << 16;
        let found = span([1000, 2, 0, 0, 0, bits]).unwrap();
        assert_eq!((found.class, found.out, found.place), (5, 12, Place::InUse));
        assert_eq!(span([1000, 2, 0, 0, 0, 3 << 24]), None);
        assert_eq!(span([1000, u64::MAX, 0, 0, 0, 0]), None);
        assert_eq!(span([0, 1, 0, 0, 0, 0]), None);
    }
}
