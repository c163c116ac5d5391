//! The walk itself, under the stop.

use super::arena::{self, Arena};
use super::block_scan::{MainPieces, Scan};
use super::chunk_lists::{ChunkList, follow};
use super::chunk_walk::{Contradiction, Piece, WalkEnd, walk_chunks};
use super::error::Error;
use super::finding::{Finding, ListKind};
use super::heap_memory::HeapMemory;
use super::layout::{ALIGNMENT_BYTES, HEADER_BYTES, MIN_CHUNK_BYTES, fastbin_chunk_bytes, state};
use super::live_blocks::Rundown;
use super::locate::{MainHeap, Plan};
use super::mappings;
use super::page_cache::PageCache;
use super::parameters::Parameters;
use super::resync::{self, Before};
use super::segment::Segment;
use super::thread_caches::CacheCandidates;
use crate::maps::{self, Mapping};

/// Walks the heap of the stopped target. `thread_pointers` are the threads' fs bases, as far as they are known: they
/// help to tell an empty thread cache from a block of the program.
pub fn walk(plan: &Plan, memory: &impl HeapMemory, thread_pointers: &[u64]) -> Result<Rundown, Error> {
    let mappings = memory.mappings()?;
    let mut walk = Walk::begin(plan, memory, &mappings);
    for (index, heap) in plan.heaps.iter().enumerate() {
        walk.main_heap(heap, index == 0)?;
    }
    walk.anonymous_memory();
    walk.lists();
    let mut cached = std::mem::take(&mut walk.cached);
    std::mem::take(&mut walk.caches).collect(
        memory,
        &plan.layout,
        thread_pointers,
        &mut cached,
        &mut walk.findings,
    );
    cached.sort_unstable();
    cached.dedup();
    Ok(Rundown {
        version: plan.version,
        segments: walk.segments,
        cached,
        mapped: walk.scan.blocks,
        arena_count: walk.arenas.len() as u32,
        findings: walk.findings,
    })
}

/// The walk's state.
struct Walk<'a, M> {
    plan: &'a Plan,
    memory: &'a M,
    mappings: &'a [Mapping],
    arenas: Vec<Arena>,
    segments: Vec<Segment>,
    caches: CacheCandidates,
    scan: Scan,
    /// Chunks in fastbins.
    cached: Vec<u64>,
    findings: Vec<Finding>,
    /// Ranges that the scan of anonymous memory leaves out.
    taken: Vec<(u64, u64)>,
    main_pieces: Vec<MainPieces>,
    mapped: Option<Parameters>,
}

impl<'a, M: HeapMemory> Walk<'a, M> {
    fn begin(plan: &'a Plan, memory: &'a M, mappings: &'a [Mapping]) -> Self {
        Self {
            plan,
            memory,
            mappings,
            arenas: Vec::new(),
            segments: Vec::new(),
            caches: CacheCandidates::default(),
            scan: Scan::default(),
            cached: Vec::new(),
            findings: Vec::new(),
            taken: Vec::new(),
            main_pieces: Vec::new(),
            mapped: None,
        }
    }

    /// All arenas of one libc.
    fn main_heap(&mut self, heap: &MainHeap, is_primary: bool) -> Result<(), Error> {
        let layout = &self.plan.layout;
        let parameters =
            heap.parameters_avma.and_then(|address| Parameters::read(self.memory, layout, address));
        let arenas = arena::ring(self.memory, heap.arena_avma, &mut self.findings);
        if arenas.is_empty() && is_primary {
            // The ring's first finding says what is wrong with the main arena itself.
            if let Some(Finding::BrokenArena { arena_avma, what, value }) = self.findings.pop() {
                return Err(Error::DamagedMainArena { address_avma: arena_avma, what, value });
            }
        }
        // Mapped blocks are counted by libc, and found for all libcs together: only a single one can be compared.
        self.mapped = if self.plan.heaps.len() == 1 { parameters } else { None };
        let first_index = self.arenas.len() as u32;
        for (index, arena) in arenas.iter().enumerate() {
            let number = first_index + index as u32;
            if arena.is_main {
                self.main_arena(arena, number, parameters, is_primary);
            } else if arena.top_avma != 0 {
                self.other_arena(arena, number, parameters);
            }
        }
        self.arenas.extend(arenas);
        Ok(())
    }

    /// The main arena: memory by brk, and where that failed, mappings.
    fn main_arena(&mut self, arena: &Arena, number: u32, parameters: Option<Parameters>, is_primary: bool) {
        if arena.top_avma == 0 {
            return;
        }
        let is_brk = |mapping: &&Mapping| mappings::is_brk(mapping);
        let brk_end_avma = self.mappings.iter().filter(is_brk).map(|mapping| mapping.end_avma).max();
        let brk_start_avma = match parameters {
            Some(parameters) => Some(parameters.brk_start_avma).filter(|start| *start != 0),
            None if is_primary => self.mappings.iter().find(is_brk).map(|mapping| mapping.start_avma),
            None => None,
        };
        if let (Some(start_avma), Some(end_avma)) = (brk_start_avma, brk_end_avma) {
            let start_avma = start_avma.next_multiple_of(ALIGNMENT_BYTES);
            let top_avma = arena.top_avma;
            let piece = Piece { start_avma, end_avma, top_avma, is_main: true, begins_arena: true };
            self.piece(piece, number);
        }
        let is_top_in_brk = maps::find(self.mappings, arena.top_avma).is_some_and(|mapping| is_brk(&mapping));
        if !arena.is_contiguous || !is_top_in_brk {
            self.main_pieces.push(MainPieces { arena: number, top_avma: arena.top_avma });
        }
    }

    /// Another arena: its heaps.
    fn other_arena(&mut self, arena: &Arena, number: u32, parameters: Option<Parameters>) {
        let huge_page_bytes = parameters.map_or(0, |parameters| parameters.huge_page_bytes);
        let layout = &self.plan.layout;
        let heaps = arena::sub_heaps(self.memory, layout, arena, huge_page_bytes, &mut self.findings);
        for heap in heaps {
            self.taken.push((heap.start_avma, heap.end_avma));
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

    /// Walks a piece, and goes on behind what is not malloc's or is damaged.
    fn piece(&mut self, mut piece: Piece, arena: u32) {
        loop {
            let mut segment = Segment::new(piece.start_avma, arena);
            let mut contradictions = Vec::new();
            let end = walk_chunks(self.memory, &piece, &mut segment, &mut self.caches, &mut contradictions);
            self.contradicted(contradictions);
            if !segment.is_empty() {
                self.segments.push(segment);
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
                        self.findings.push(Finding::ForeignBrk { start_avma: behind_avma, end_avma });
                    }
                    again_avma
                }
                WalkEnd::Corrupt { chunk_avma, size_field } => {
                    let rest = Piece { start_avma: chunk_avma + HEADER_BYTES, ..piece };
                    let resumed_avma =
                        resync::first_consistent(self.memory, self.mappings, &rest, Before::DamagedChunks);
                    let end_avma = piece.end_avma;
                    self.findings.push(Finding::CorruptSize {
                        chunk_avma,
                        size_field,
                        resumed_avma,
                        end_avma,
                    });
                    resumed_avma
                }
                WalkEnd::Unreadable { address_avma } => {
                    self.findings
                        .push(Finding::Unreadable { start_avma: address_avma, end_avma: piece.end_avma });
                    None
                }
            };
            match again_avma {
                // Each round begins further on, so this ends.
                Some(again_avma) if again_avma > piece.start_avma => {
                    piece = Piece { start_avma: again_avma, begins_arena: false, ..piece };
                }
                _ => return,
            }
        }
    }

    /// Behind marks: usually at once or after the program's own memory.
    fn begins_again(&self, rest: &Piece) -> Option<u64> {
        if rest.start_avma == rest.top_avma {
            return Some(rest.start_avma);
        }
        resync::first_consistent(self.memory, self.mappings, rest, Before::ForeignMemory)
    }

    fn contradicted(&mut self, contradictions: Vec<Contradiction>) {
        self.findings.extend(contradictions.into_iter().map(|contradiction| Finding::Contradiction {
            chunk_avma: contradiction.chunk_avma,
            size_bytes: contradiction.size_bytes,
            recorded_bytes: contradiction.recorded_bytes,
        }));
    }

    /// Blocks with their own mapping, and the main arena's pieces outside brk.
    fn anonymous_memory(&mut self) {
        if self.mapped.is_some_and(|mapped| mapped.mapped_count == 0) && self.main_pieces.is_empty() {
            return;
        }
        self.taken.sort_unstable();
        self.scan = self.scanned(false);
        let is_short = |scan: &Scan| self.mapped.is_some_and(|expected| !is_as_counted(scan, expected));
        if is_short(&self.scan) {
            let thorough = self.scanned(true);
            if !is_short(&thorough) || thorough.blocks.len() > self.scan.blocks.len() {
                self.scan = thorough;
            }
        }
        self.segments.append(&mut self.scan.segments);
        let contradictions = std::mem::take(&mut self.scan.contradictions);
        self.contradicted(contradictions);
        self.caches.merge(std::mem::take(&mut self.scan.caches));
        if let Some(expected) = self.mapped.filter(|expected| !is_as_counted(&self.scan, *expected)) {
            self.findings.push(Finding::MappedCount {
                found: self.scan.blocks.len() as u64,
                found_bytes: self.scan.mapping_bytes(),
                expected: expected.mapped_count,
                expected_bytes: expected.mapped_bytes,
            });
        }
    }

    /// Looks through all anonymous memory that is not an arena's heap.
    fn scanned(&self, is_thorough: bool) -> Scan {
        let mut scan = Scan { is_thorough, ..Scan::default() };
        let mut look = |start_avma, end_avma| {
            if start_avma < end_avma {
                scan.look(self.memory, (start_avma, end_avma), &self.main_pieces);
            }
        };
        for mapping in self.mappings.iter().filter(|mapping| mappings::is_private_anonymous(mapping)) {
            let mut start_avma = mapping.start_avma;
            for (taken_start_avma, taken_end_avma) in &self.taken {
                if *taken_end_avma <= start_avma || *taken_start_avma >= mapping.end_avma {
                    continue;
                }
                look(start_avma, *taken_start_avma);
                start_avma = *taken_end_avma;
            }
            look(start_avma, mapping.end_avma);
        }
        scan
    }

    /// The fastbins of all arenas.
    fn lists(&mut self) {
        let mut pages = PageCache::new(self.memory);
        for arena in &self.arenas {
            for (bin, first_avma) in arena.fastbins.iter().enumerate() {
                let list = ChunkList {
                    kind: ListKind::Fastbin,
                    head_avma: arena.address_avma + (state::FASTBINS + bin * 8) as u64,
                    first_avma: *first_avma,
                    chunk_bytes: fastbin_chunk_bytes(bin),
                    most_entries: arena.system_bytes / MIN_CHUNK_BYTES,
                };
                if let Err(finding) = follow(&mut pages, &self.plan.layout, &list, &mut self.cached) {
                    self.findings.push(finding);
                }
            }
        }
    }
}

/// Whether the scan found what malloc counts.
fn is_as_counted(scan: &Scan, expected: Parameters) -> bool {
    (scan.blocks.len() as u64, scan.mapping_bytes()) == (expected.mapped_count, expected.mapped_bytes)
}
