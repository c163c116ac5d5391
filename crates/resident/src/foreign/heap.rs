//! The heap of another allocator, as its tables describe it.

use std::ops::Range;

/// The heap of an allocator that is not glibc's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeignHeap {
    /// Name of the allocator.
    pub allocator: &'static str,
    /// Amounts, named as the allocator names them.
    pub figures: Vec<Figure>,
    /// Parts by address, without overlap.
    pub(crate) parts: Vec<HeapPart>,
}

/// An amount under the allocator's own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure {
    /// Name in JSON and, with spaces, in texts; it ends with `_bytes`.
    pub name: &'static str,
    /// Bytes of addresses, resident or not.
    pub bytes: u64,
}

/// Neighbouring addresses of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeapPart {
    pub(crate) range_avma: Range<u64>,
    pub(crate) kind: PartKind,
    /// Bytes of live blocks in the part.
    pub(crate) live_bytes: u64,
}

/// Kind of a part of a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartKind {
    /// One block.
    Block,
    /// Pages of small blocks, some of them live.
    SmallBlocks,
    /// Free pages.
    Free,
    /// Tables of the allocator.
    Own,
}

impl ForeignHeap {
    /// Looks a figure up by its name.
    pub fn figure(&self, name: &str) -> Option<u64> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| figure.bytes)
    }

    /// Sorts the parts by address, cuts overlaps, and merges neighbours of one kind.
    pub(super) fn put_in_order(&mut self) {
        self.parts.sort_by_key(|part| (part.range_avma.start, std::cmp::Reverse(part.range_avma.end)));
        let mut ordered: Vec<HeapPart> = Vec::with_capacity(self.parts.len());
        for mut part in std::mem::take(&mut self.parts) {
            let end_avma = ordered.last().map_or(0, |last| last.range_avma.end);
            part.range_avma.start = part.range_avma.start.max(end_avma);
            if part.range_avma.is_empty() {
                continue;
            }
            match ordered.last_mut() {
                Some(last)
                    if last.kind == part.kind
                        && part.kind != PartKind::Block
                        && last.range_avma.end == part.range_avma.start =>
                {
                    last.range_avma.end = part.range_avma.end;
                    last.live_bytes = last.live_bytes.saturating_add(part.live_bytes);
                }
                _ => ordered.push(part),
            }
        }
        self.parts = ordered;
    }

    /// Subtracts cached bytes from the live bytes of all small-block parts, in proportion.
    pub(super) fn take_cached(&mut self, cached_bytes: u64) {
        let small = |part: &&mut HeapPart| part.kind == PartKind::SmallBlocks;
        let all: u64 = self.parts.iter_mut().filter(small).map(|part| part.live_bytes).sum();
        let left = all.saturating_sub(cached_bytes);
        for part in self.parts.iter_mut().filter(small) {
            let share = u128::from(part.live_bytes) * u128::from(left) / u128::from(all.max(1));
            part.live_bytes = share as u64;
        }
    }

    /// Live bytes in `range_avma`: each part's share by addresses.
    pub(crate) fn live_bytes_in(&self, range_avma: &Range<u64>) -> u64 {
        let first = self.parts.partition_point(|part| part.range_avma.end <= range_avma.start);
        let inside = self.parts[first..].iter().take_while(|part| part.range_avma.start < range_avma.end);
        let live = inside.map(|part| {
            let length = (part.range_avma.end - part.range_avma.start).max(1);
            let start_avma = part.range_avma.start.max(range_avma.start);
            let end_avma = part.range_avma.end.min(range_avma.end);
            let share = u128::from(part.live_bytes) * u128::from(end_avma.saturating_sub(start_avma));
            (share / u128::from(length)) as u64
        });
        live.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(range_avma: Range<u64>, kind: PartKind, live_bytes: u64) -> HeapPart {
        HeapPart { range_avma, kind, live_bytes }
    }

    #[test]
    fn neighbours_are_made_one_and_a_live_share_goes_with_the_addresses() {
        let mut heap = ForeignHeap { allocator: "a", ..ForeignHeap::default() };
        heap.parts = vec![
            part(4096..8192, PartKind::SmallBlocks, 1000),
            part(0..4096, PartKind::SmallBlocks, 3000),
            part(8192..20480, PartKind::Block, 12288),
            part(12288..16384, PartKind::Free, 0),
        ];
        heap.put_in_order();
        assert_eq!(heap.parts[0], part(0..8192, PartKind::SmallBlocks, 4000));
        assert_eq!(heap.parts.len(), 2);
        assert_eq!(heap.live_bytes_in(&(4096..12288)), 2000 + 4096);
        heap.take_cached(1000);
        assert_eq!((heap.parts[0].live_bytes, heap.parts[1].live_bytes), (3000, 12288));
    }
}
