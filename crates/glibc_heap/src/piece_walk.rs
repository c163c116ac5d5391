//! Walks pieces of heap one after the other, and many arenas in parallel.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use super::arena::{self, Arena};
use super::chunk_walk::{Contradiction, Piece, WalkEnd, walk_chunks};
use super::finding::Finding;
use super::heap_memory::HeapMemory;
use super::layout::{HEADER_BYTES, Layout, MIN_CHUNK_BYTES};
use super::parameters::Parameters;
use super::read_store::{Pieces, ReadOnce, Slabs};
use super::resync::{self, Before};
use super::segment::Segment;
use super::thread_caches::{CacheCandidates, worker_count};
use heapr_proc::Mapping;

/// Results of walks over pieces.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) segments: Vec<Segment>,
    pub(super) caches: CacheCandidates,
    pub(super) findings: Vec<Finding>,
    /// Ranges that belong to arenas.
    pub(super) taken: Vec<(u64, u64)>,
}

impl Found {
    fn new(layout: &Layout) -> Self {
        Self {
            segments: Vec::new(),
            caches: CacheCandidates::new(layout.cache),
            findings: Vec::new(),
            taken: Vec::new(),
        }
    }

    pub(super) fn append(&mut self, mut other: Self) {
        self.segments.append(&mut other.segments);
        self.caches.merge(other.caches);
        self.findings.append(&mut other.findings);
        self.taken.append(&mut other.taken);
    }

    /// Adds free chunks whose neighbours disagree as findings.
    pub(super) fn contradicted(&mut self, contradictions: Vec<Contradiction>) {
        self.findings.extend(contradictions.into_iter().map(|contradiction| Finding::Contradiction {
            chunk_avma: contradiction.chunk_avma,
            size_bytes: contradiction.size_bytes,
            recorded_bytes: contradiction.recorded_bytes,
        }));
    }
}

/// State of a walk over pieces.
#[derive(Debug)]
pub(super) struct PieceWalk<'a, M> {
    memory: &'a M,
    mappings: &'a [Mapping],
    window: Vec<u8>,
    pub(super) found: Found,
}

impl<'a, M: HeapMemory> PieceWalk<'a, M> {
    pub(super) fn new(memory: &'a M, layout: &Layout, mappings: &'a [Mapping]) -> Self {
        Self { memory, mappings, window: Vec::new(), found: Found::new(layout) }
    }

    /// Walks the heaps of an arena that does not use brk.
    fn other_arena(&mut self, layout: &Layout, arena: &Arena, number: u32, parameters: Option<Parameters>) {
        let huge_page_bytes = parameters.map_or(0, |parameters| parameters.huge_page_bytes);
        let heaps = arena::sub_heaps(self.memory, layout, arena, huge_page_bytes, &mut self.found.findings);
        for heap in heaps {
            self.found.taken.push((heap.start_avma, heap.end_avma));
            let piece = Piece {
                start_avma: heap.first_chunk_avma,
                end_avma: heap.end_avma,
                top_avma: arena.top_avma,
                is_main: false,
                begins_arena: heap.is_first,
            };
            self.piece(piece, number);
        }
    }

    /// Walks a piece, and continues behind foreign or damaged memory.
    pub(super) fn piece(&mut self, mut piece: Piece, arena: u32) {
        loop {
            let mut segment = Segment::new(piece.start_avma, arena);
            let mut contradictions = Vec::new();
            let end = walk_chunks(
                self.memory,
                &piece,
                &mut self.window,
                &mut segment,
                &mut self.found.caches,
                &mut contradictions,
            );
            self.found.contradicted(contradictions);
            if !segment.is_empty() {
                self.found.segments.push(segment);
            }
            let again_avma = match end {
                WalkEnd::Top => return,
                WalkEnd::Fence { behind_avma } => {
                    let rest = Piece { start_avma: behind_avma, ..piece };
                    if !piece.is_main || behind_avma + MIN_CHUNK_BYTES > piece.end_avma {
                        return;
                    }
                    let again_avma = self.begins_again(&rest);
                    let end_avma = again_avma.unwrap_or(piece.end_avma);
                    if end_avma > behind_avma {
                        self.found.findings.push(Finding::ForeignBrk { start_avma: behind_avma, end_avma });
                    }
                    again_avma
                }
                WalkEnd::Corrupt { chunk_avma, size_field } => {
                    let rest = Piece { start_avma: chunk_avma + HEADER_BYTES, ..piece };
                    let resumed_avma =
                        resync::first_consistent(self.memory, self.mappings, &rest, Before::DamagedChunks);
                    let end_avma = piece.end_avma;
                    self.found.findings.push(Finding::CorruptSize {
                        chunk_avma,
                        size_field,
                        resumed_avma,
                        end_avma,
                    });
                    resumed_avma
                }
                WalkEnd::Unreadable { address_avma } => {
                    self.found
                        .findings
                        .push(Finding::Unreadable { start_avma: address_avma, end_avma: piece.end_avma });
                    None
                }
            };
            match again_avma {
                // Each round begins further on, so the loop ends.
                Some(again_avma) if again_avma > piece.start_avma => {
                    piece = Piece { start_avma: again_avma, begins_arena: false, ..piece };
                }
                _ => return,
            }
        }
    }

    /// Start of the next run of chunks behind marks: at once, or behind memory of the program.
    fn begins_again(&self, rest: &Piece) -> Option<u64> {
        if rest.start_avma == rest.top_avma {
            return Some(rest.start_avma);
        }
        resync::first_consistent(self.memory, self.mappings, rest, Before::ForeignMemory)
    }
}

/// Facts for the heaps of one libc.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heaps<'a> {
    pub(super) layout: &'a Layout,
    pub(super) mappings: &'a [Mapping],
    pub(super) parameters: Option<Parameters>,
    /// Index of the first arena in the ring of all arenas.
    pub(super) first_number: u32,
}

/// Walks the arenas besides the main one.
pub(super) fn other_arenas<'s, M: HeapMemory + Sync>(
    memory: &M,
    slabs: &Slabs<'s>,
    heaps: &Heaps<'_>,
    arenas: &[Arena],
) -> (Found, Pieces<'s>) {
    /// Least bytes for a second thread: smaller heaps are read in less time than a thread needs to
    /// start.
    const LEAST_BYTES: u64 = 4 << 20;
    let next = AtomicUsize::new(0);
    let work = || {
        let once = ReadOnce::new(memory, slabs);
        let mut found = Vec::new();
        loop {
            let index = next.fetch_add(1, Relaxed);
            let Some(arena) = arenas.get(index) else { break };
            if arena.top_avma == 0 {
                continue;
            }
            let mut walk = PieceWalk::new(&once, heaps.layout, heaps.mappings);
            walk.other_arena(heaps.layout, arena, heaps.first_number + index as u32, heaps.parameters);
            found.push((index, walk.found));
        }
        (found, once.into_pieces())
    };
    let bytes = arenas.iter().map(|arena| arena.system_bytes).fold(0, u64::saturating_add);
    let others = if bytes < LEAST_BYTES { 0 } else { worker_count(arenas.len()).saturating_sub(1) };
    let outcomes = thread::scope(|scope| {
        // If no thread can be created, this one does all the work.
        let start = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (0..others).filter_map(start).collect();
        let mut outcomes = vec![work()];
        for other in others {
            match other.join() {
                Ok(outcome) => outcomes.push(outcome),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        outcomes
    });
    let mut pieces = Pieces::default();
    let mut parts = Vec::new();
    for (found, read) in outcomes {
        parts.extend(found);
        pieces.append(read);
    }
    parts.sort_by_key(|(index, _)| *index);
    let mut all = Found::new(heaps.layout);
    parts.into_iter().for_each(|(_, found)| all.append(found));
    (all, pieces)
}
