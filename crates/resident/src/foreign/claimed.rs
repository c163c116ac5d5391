//! Claims for the heaps of other allocators.

use super::heap::{ForeignHeap, PartKind};
use crate::claims::Claim;
use crate::class::{Class, ToldBy};

/// Claims all parts of a heap.
pub(crate) fn claimed(heap: &ForeignHeap) -> impl Iterator<Item = Claim> {
    heap.parts.iter().map(|part| {
        let (class, what) = match part.kind {
            PartKind::Block | PartKind::SmallBlocks => (Class::AllocatorLive, None),
            PartKind::Free => (Class::AllocatorSlack, Some("free pages")),
            PartKind::Own => (Class::AllocatorSlack, Some("its own")),
        };
        let part_name = match what {
            Some(what) => format!("{}: {what}", heap.allocator),
            None => heap.allocator.to_owned(),
        };
        Claim { range_avma: part.range_avma.clone(), class, part: part_name, told_by: ToldBy::Contents }
    })
}
