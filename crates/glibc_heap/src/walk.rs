//! The walk, during the stop.

use super::arena::{self, Arena};
use super::arena_top::ArenaTop;
use super::block_scan::{MainPieces, Scan};
use super::chunk_lists::{ChunkList, follow};
use super::chunk_walk::Piece;
use super::error::Error;
use super::finding::{Finding, ListKind};
use super::heap_memory::HeapMemory;
use super::heap_plan::{MainHeap, Plan};
use super::layout::{ALIGNMENT_BYTES, Layout, MIN_CHUNK_BYTES, fastbin_chunk_bytes};
use super::live_blocks::Rundown;
use super::mappings;
use super::page_cache::PageCache;
use super::parameters::Parameters;
use super::piece_walk::{Found, Heaps, PieceWalk, other_arenas};
use super::read_store::{Known, Nothing, Pieces, ReadOnce, ReadStore, Slabs};
use super::thread_caches::CacheCandidates;
use heapr_proc::Mapping;
use heapr_proc::page_bytes;

/// Walks the heap of the stopped target, and finishes the reading at once.
///
/// # Errors
/// Errors of [`read`].
pub fn walk(
    plan: &Plan,
    memory: &(impl HeapMemory + Sync),
    thread_pointers: &[u64],
    store: &mut ReadStore,
) -> Result<Rundown, Error> {
    Ok(read(plan, memory, thread_pointers, store)?.finish())
}

/// Memory and results of a walk; the target may run before they are finished.
#[derive(Debug)]
pub struct Reading<'s> {
    /// Rundown, without the chunks in thread caches if `caches` is `Some`.
    rundown: Rundown,
    /// Data to find the chunks in thread caches; `None`: they are in the rundown already.
    caches: Option<CachesRead<'s>>,
}

/// Data by which the chunks in thread caches are found.
#[derive(Debug)]
struct CachesRead<'s> {
    layout: Layout,
    caches: CacheCandidates,
    threads: Vec<Vec<u64>>,
    memory: Known<'static, 's, Nothing>,
}

impl Reading<'_> {
    /// Follows the lists of the thread caches through the stored memory. With many threads this
    /// takes as long as the reading.
    #[must_use]
    pub fn finish(self) -> Rundown {
        let Self { mut rundown, caches } = self;
        if let Some(CachesRead { layout, caches, threads, memory }) = caches {
            caches.collect(&memory, &layout, &threads, &mut rundown.cached, &mut rundown.findings);
        }
        rundown.cached.sort_unstable();
        rundown.cached.dedup();
        rundown
    }
}

/// Walks the heap of the stopped target. `thread_pointers`: the threads' fs bases, as far as known;
/// they help to tell an empty thread cache from a block of the program. `store`: from
/// [`Plan::room`].
///
/// # Errors
/// Fails if the mappings cannot be read, or with [`Error::DamagedMainArena`].
pub fn read<'s>(
    plan: &Plan,
    memory: &(impl HeapMemory + Sync),
    thread_pointers: &[u64],
    store: &'s mut ReadStore,
) -> Result<Reading<'s>, Error> {
    let slabs = &store.slabs();
    let once = ReadOnce::new(memory, slabs);
    let mappings = memory.mappings()?;
    let mut walk = Walk::begin(plan, memory, slabs, &once, &mappings);
    for (index, heap) in plan.heaps.iter().enumerate() {
        walk.main_heap(heap, index == 0)?;
    }
    walk.anonymous_memory();
    walk.lists();
    let Walk { walk: PieceWalk { found, .. }, cached, arenas, mut tops, scan, mut pieces, .. } = walk;
    let Found { segments, caches, findings, taken } = found;
    let mut own = taken;
    for arena in &arenas {
        own.push((arena.address_avma, arena.address_avma + plan.layout.state.bytes as u64));
        own.push((arena.top_avma, arena.top_avma.saturating_add(arena.top_bytes)));
    }
    let mut fastbins = cached.clone();
    fastbins.sort_unstable();
    tops.sort_unstable_by_key(|top| top.start_avma);
    pieces.append(once.into_pieces());
    let threads = caches.thread_words(memory, thread_pointers);
    let mut rundown = Rundown {
        version: plan.version,
        segments,
        cached,
        mapped: scan.blocks,
        mapped_overhead_bytes: plan.layout.mapped_overhead_bytes(),
        arena_count: arenas.len() as u32,
        findings,
        own,
        fastbins,
        tops,
    };
    if slabs.were_enough() {
        let memory = Known::new(&Nothing, pieces);
        let caches = Some(CachesRead { layout: plan.layout, caches, threads, memory });
        return Ok(Reading { rundown, caches });
    }
    // The rest must be read again, while the target is stopped.
    let known = Known::new(memory, pieces);
    caches.collect(&known, &plan.layout, &threads, &mut rundown.cached, &mut rundown.findings);
    Ok(Reading { rundown, caches: None })
}

/// State of the walk.
struct Walk<'a, 's, M> {
    plan: &'a Plan,
    memory: &'a M,
    slabs: &'a Slabs<'s>,
    /// The target's memory with storage, for this thread.
    once: &'a ReadOnce<'a, 's, M>,
    mappings: &'a [Mapping],
    arenas: Vec<Arena>,
    tops: Vec<ArenaTop>,
    walk: PieceWalk<'a, ReadOnce<'a, 's, M>>,
    scan: Scan,
    /// Chunks in fastbins.
    cached: Vec<u64>,
    main_pieces: Vec<MainPieces>,
    mapped: Option<Parameters>,
    /// Memory that other threads have read.
    pieces: Pieces<'s>,
}

impl<'a, 's, M: HeapMemory + Sync> Walk<'a, 's, M> {
    fn begin(
        plan: &'a Plan,
        memory: &'a M,
        slabs: &'a Slabs<'s>,
        once: &'a ReadOnce<'a, 's, M>,
        mappings: &'a [Mapping],
    ) -> Self {
        Self {
            plan,
            memory,
            slabs,
            once,
            mappings,
            arenas: Vec::new(),
            tops: Vec::new(),
            walk: PieceWalk::new(once, &plan.layout, mappings),
            scan: Scan::new(&plan.layout, false),
            cached: Vec::new(),
            main_pieces: Vec::new(),
            mapped: None,
            pieces: Pieces::default(),
        }
    }

    /// Walks all arenas of one libc.
    fn main_heap(&mut self, heap: &MainHeap, is_primary: bool) -> Result<(), Error> {
        let layout = &self.plan.layout;
        let parameters =
            heap.parameters_avma.and_then(|address| Parameters::read(self.once, layout, address));
        let arenas = arena::ring(self.once, layout, heap.arena_avma, &mut self.walk.found.findings);
        if arenas.is_empty() && is_primary {
            // The ring's first finding names the fault of the main arena.
            if let Some(Finding::BrokenArena { arena_avma, what, value }) = self.walk.found.findings.pop() {
                return Err(Error::DamagedMainArena { address_avma: arena_avma, what, value });
            }
        }
        // Mapped blocks are counted by each libc, but found for all libcs together: the counts are
        // comparable for a single libc only.
        self.mapped = if self.plan.heaps.len() == 1 { parameters } else { None };
        let first_index = self.arenas.len() as u32;
        if let Some((first, others)) = arenas.split_first() {
            self.main_arena(first, first_index, parameters, is_primary);
            let heaps = Heaps { layout, mappings: self.mappings, parameters, first_number: first_index + 1 };
            let (found, pieces) = other_arenas(self.memory, self.slabs, &heaps, others);
            self.walk.found.append(found);
            self.pieces.append(pieces);
        }
        let with_top = arenas.iter().enumerate().filter(|(_, arena)| arena.top_avma != 0);
        self.tops.extend(with_top.map(|(place, arena)| ArenaTop {
            arena: first_index + place as u32,
            start_avma: arena.top_avma,
            size_bytes: arena.top_bytes,
            is_main: place == 0,
        }));
        self.arenas.extend(arenas);
        Ok(())
    }

    /// Walks the main arena: memory by brk. Mappings in its place are left to
    /// [`Self::anonymous_memory`].
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
            self.walk.piece(piece, number);
        }
        let is_top_in_brk =
            heapr_proc::mappings::find(self.mappings, arena.top_avma).is_some_and(|mapping| is_brk(&mapping));
        if !arena.is_contiguous || !is_top_in_brk {
            self.main_pieces.push(MainPieces { arena: number, top_avma: arena.top_avma });
        }
    }

    /// Finds blocks with their own mapping, and the main arena's pieces outside brk.
    fn anonymous_memory(&mut self) {
        if self.mapped.is_some_and(|mapped| mapped.mapped_count == 0) && self.main_pieces.is_empty() {
            return;
        }
        self.walk.found.taken.sort_unstable();
        self.scan = self.scanned(false);
        let is_short = |scan: &Scan| self.mapped.is_some_and(|expected| !is_as_counted(scan, expected));
        if is_short(&self.scan) {
            let thorough = self.scanned(true);
            let is_larger = |expected| {
                may_be_as_counted(&thorough, expected) && thorough.mapping_bytes() > self.scan.mapping_bytes()
            };
            if !is_short(&thorough)
                || thorough.blocks.len() > self.scan.blocks.len()
                || self.mapped.is_some_and(is_larger)
            {
                self.scan = thorough;
            }
        }
        self.walk.found.segments.append(&mut self.scan.segments);
        let contradictions = std::mem::take(&mut self.scan.contradictions);
        self.walk.found.contradicted(contradictions);
        let none = self.scan.caches.of_same_kind();
        self.walk.found.caches.merge(std::mem::replace(&mut self.scan.caches, none));
        let is_explained =
            |expected| is_as_counted(&self.scan, expected) || may_be_as_counted(&self.scan, expected);
        if let Some(expected) = self.mapped.filter(|expected| !is_explained(*expected)) {
            self.walk.found.findings.push(Finding::MappedCount {
                found: self.scan.blocks.len() as u64,
                found_bytes: self.scan.mapping_bytes(),
                expected: expected.mapped_count,
                expected_bytes: expected.mapped_bytes,
            });
        }
    }

    /// Scans all anonymous memory outside of arenas' heaps.
    fn scanned(&self, is_thorough: bool) -> Scan {
        let mut scan = Scan::new(&self.plan.layout, is_thorough);
        // Downwards: the kernel places such blocks below the libraries, where memory of other
        // allocators is rare. The scan ends when all blocks that malloc counts are found.
        let anonymous = self.mappings.iter().rev().filter(|mapping| mappings::is_private_anonymous(mapping));
        for mapping in anonymous {
            if self.main_pieces.is_empty() && self.mapped.is_some_and(|counted| is_as_counted(&scan, counted))
            {
                break;
            }
            let mut look = |start_avma, end_avma| {
                if start_avma < end_avma {
                    scan.look(self.once, (start_avma, end_avma), &self.main_pieces);
                }
            };
            let mut start_avma = mapping.start_avma;
            for (taken_start_avma, taken_end_avma) in &self.walk.found.taken {
                if *taken_end_avma <= start_avma || *taken_start_avma >= mapping.end_avma {
                    continue;
                }
                look(start_avma, *taken_start_avma);
                start_avma = *taken_end_avma;
            }
            look(start_avma, mapping.end_avma);
        }
        scan.blocks.sort_unstable_by_key(|block| block.chunk_avma);
        scan
    }

    /// Follows the fastbins of all arenas.
    fn lists(&mut self) {
        let Some(fastbins) = self.plan.layout.state.fastbins else { return };
        let mut pages = PageCache::new(self.once);
        for arena in &self.arenas {
            for (bin, first_avma) in arena.fastbins.iter().enumerate() {
                let list = ChunkList {
                    kind: ListKind::Fastbin,
                    head_avma: arena.address_avma + (fastbins + bin * 8) as u64,
                    first_avma: *first_avma,
                    chunk_bytes: (fastbin_chunk_bytes(bin), fastbin_chunk_bytes(bin)),
                    most_entries: arena.system_bytes / MIN_CHUNK_BYTES,
                };
                if let Err(finding) = follow(&mut pages, &self.plan.layout, &list, &mut self.cached) {
                    self.walk.found.findings.push(finding);
                }
            }
        }
    }
}

/// Whether the scan found as many blocks and bytes as malloc counts.
pub(super) fn is_as_counted(scan: &Scan, expected: Parameters) -> bool {
    let found_bytes = scan.mapping_bytes();
    // If the count drifted by more than a page, missing blocks cannot be excluded.
    let is_same = if expected.drifts {
        may_be_as_counted(scan, expected) && expected.mapped_bytes - found_bytes < page_bytes()
    } else {
        found_bytes == expected.mapped_bytes
    };
    scan.blocks.len() as u64 == expected.mapped_count && is_same
}

/// Whether the drift of the count can explain the difference.
fn may_be_as_counted(scan: &Scan, expected: Parameters) -> bool {
    let surplus_bytes = expected.mapped_bytes.checked_sub(scan.mapping_bytes());
    expected.drifts
        && scan.blocks.len() as u64 == expected.mapped_count
        && surplus_bytes.is_some_and(|bytes| bytes.is_multiple_of(ALIGNMENT_BYTES))
}
