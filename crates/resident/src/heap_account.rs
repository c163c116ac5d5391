//! glibc's heap in an account, divided by the use of its bytes.

use heapr_glibc_heap::{BlockKind, Region, RegionKind, Rundown};

use crate::account::{Account, Piece};
use crate::class::{Class, ToldBy};
use crate::heap_detail::HeapDetail;
use crate::heap_pages::{BlockWatcher, HeapDivision, ResidentPages, divide};
use crate::heap_spans::HeapSpans;
use crate::residency::apportion;
use crate::subject::PageStates;

impl Account {
    /// Replaces the pieces of glibc's heap by pieces for each use.
    pub fn divide_heap(
        &mut self,
        rundown: &Rundown,
        regions: &[Region],
        states: &impl PageStates,
        watcher: &mut impl BlockWatcher,
    ) {
        let spans = HeapSpans::new(rundown, regions);
        let mut detail = HeapDetail::default();
        let totals = rundown.totals();
        (detail.live_blocks, detail.mapped_blocks) = (totals.live_blocks, totals.mapped_blocks);
        detail.findings = rundown.findings().iter().map(ToString::to_string).collect();
        let mut mapped: Vec<(u64, u64)> = rundown
            .blocks()
            .filter(|block| block.kind == BlockKind::Mapped)
            .map(|block| (block.address_avma, block.usable_bytes))
            .collect();
        mapped.sort_unstable();
        let mut pieces = Vec::with_capacity(self.pieces.len());
        for piece in std::mem::take(&mut self.pieces) {
            if piece.class != Class::GlibcHeap {
                pieces.push(piece);
                continue;
            }
            let place = regions.partition_point(|region| region.end_avma <= piece.range_avma.start);
            let region = regions.get(place).filter(|region| region.start_avma <= piece.range_avma.start);
            match self.division_of(&piece, region, &mapped, &spans, states, watcher) {
                Some(division) => {
                    detail.all.add(&division);
                    if let Some(region) = region.filter(|region| region.kind != RegionKind::MappedBlock) {
                        detail.arenas.entry(region.arena).or_default().add(&division);
                    }
                    pieces.extend(divided(&piece, &division));
                }
                None => pieces.push(piece),
            }
        }
        self.pieces = pieces;
        self.heap = Some(detail);
    }

    fn division_of(
        &mut self,
        piece: &Piece,
        region: Option<&Region>,
        mapped: &[(u64, u64)],
        spans: &HeapSpans<'_>,
        states: &impl PageStates,
        watcher: &mut impl BlockWatcher,
    ) -> Option<HeapDivision> {
        let range = &piece.range_avma;
        let rss_bytes = piece.pages.rss_bytes;
        let Some(region) = region else {
            // Memory between the start of brk and malloc's first chunk.
            return Some(HeapDivision { header_bytes: rss_bytes, ..HeapDivision::default() });
        };
        if region.kind == RegionKind::MappedBlock {
            let place = mapped.partition_point(|(block_avma, _)| *block_avma < region.start_avma);
            let block = mapped.get(place).filter(|(block_avma, _)| *block_avma < region.end_avma);
            let (block_avma, usable_bytes) = *block?;
            let used_bytes = watcher.asked_bytes(block_avma).unwrap_or(usable_bytes).min(usable_bytes);
            let beside_bytes = (region.end_avma - region.start_avma).saturating_sub(used_bytes);
            // Untouched pages are most likely at the block's end, beyond the requested size.
            let untouched_bytes = (region.end_avma - region.start_avma).saturating_sub(rss_bytes);
            return Some(HeapDivision::of_mapped(rss_bytes, beside_bytes.saturating_sub(untouched_bytes)));
        }
        let Some(resident) = ResidentPages::of(range, rss_bytes, states) else {
            self.estimated_mappings += 1;
            return None;
        };
        let mut division = divide(range, &resident, spans, watcher);
        // The arena's own tables precede the first chunk of its heap.
        if region.kind == RegionKind::ArenaHeap {
            let own_bytes = division.foreign_bytes.min(heapr_proc::page_bytes());
            division.header_bytes += own_bytes;
            division.foreign_bytes -= own_bytes;
        }
        Some(division)
    }
}

fn divided(piece: &Piece, division: &HeapDivision) -> Vec<Piece> {
    let by_class = division.by_class();
    let weights = by_class.map(|(_, bytes)| bytes);
    let amounts = apportion(&piece.pages, &weights, &weights);
    let named = by_class.into_iter().zip(amounts);
    let named = named.filter(|(_, pages)| pages.rss_bytes > 0 || pages.swapped_bytes > 0);
    let pieces = named.map(|((class, _), pages)| Piece {
        range_avma: piece.range_avma.clone(),
        class,
        part: match class {
            Class::Unknown => "inside of malloc's heap, not malloc's".to_owned(),
            _ => piece.part.clone(),
        },
        told_by: ToldBy::Contents,
        pages,
    });
    pieces.collect()
}
