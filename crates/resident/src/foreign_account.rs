//! Heaps of other allocators in an account: who owns which pages, and what of them is live.

use crate::account::{Account, Piece};
use crate::claims::Claim;
use crate::class::{Class, ToldBy};
use crate::foreign::{ForeignHeap, PartKind};
use crate::residency::apportion;

/// Claims all parts of a heap.
pub(crate) fn claims(heap: &ForeignHeap) -> impl Iterator<Item = Claim> {
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

impl Account {
    /// Takes from pages with live blocks what is not live.
    pub(crate) fn divide_foreign(&mut self) {
        if self.foreign.is_empty() {
            return;
        }
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for piece in std::mem::take(&mut self.pieces) {
            let heap = self.foreign.iter().find(|heap| heap.allocator == piece.part);
            let Some(heap) = heap.filter(|_| piece.class == Class::AllocatorLive) else {
                pieces.push(piece);
                continue;
            };
            // Blocks that were never written have no pages: what is resident is live first.
            let live = heap.live_bytes_in(&piece.range_avma).min(piece.pages.rss_bytes);
            let weights = [live, piece.pages.rss_bytes - live];
            let named = [
                (Class::AllocatorLive, piece.part.clone()),
                (Class::AllocatorSlack, format!("{}: beside live blocks", piece.part)),
            ];
            let amounts = apportion(&piece.pages, &weights, &weights);
            for ((class, part), pages) in named.into_iter().zip(amounts) {
                if pages.rss_bytes > 0 || pages.swapped_bytes > 0 {
                    pieces.push(Piece { class, part, pages, ..piece.clone() });
                }
            }
        }
        self.pieces = pieces;
    }
}
