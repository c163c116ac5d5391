//! Heaps of other allocators in an account: their pages divided into live memory and slack.

use crate::account::{Account, Piece};
use crate::class::Class;
use crate::residency::apportion;

impl Account {
    /// Divides pages with live blocks into live bytes and slack.
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
            // Blocks that were never written have no pages: resident bytes count as live first.
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
