//! Regions of the heap without its blocks: as much as can be found while the process runs.

use super::arena;
use super::block_scan::{MainPieces, Scan};
use super::heap_memory::HeapMemory;
use super::heap_plan::{MainHeap, Plan};
use super::layout::ALIGNMENT_BYTES;
use super::mappings;
use super::parameters::Parameters;
use super::walk::is_as_counted;
use heapr_proc::Mapping;

/// A part of the address space that belongs to the heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start_avma: u64,
    /// Exclusive end.
    pub end_avma: u64,
    /// Index of the arena in the ring; 0 is the main arena, which also owns the mapped blocks.
    pub arena: u32,
    /// Origin of the region.
    pub kind: RegionKind,
}

/// Origin of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// Memory by brk.
    Brk,
    /// A heap of an arena besides the main one.
    ArenaHeap,
    /// A block with a mapping of its own.
    MappedBlock,
    /// A piece of the main arena where brk failed.
    MainPiece,
}

/// All regions of a heap.
#[derive(Debug, Clone, Default)]
pub struct Regions {
    /// The regions, by address.
    pub regions: Vec<Region>,
    /// Number of arenas.
    pub arena_count: u32,
    /// Bytes of the arenas by malloc's own count.
    pub arena_bytes: u64,
}

/// Finds the heap's regions. The target may run: parts that change at that moment may be missing.
/// `others`: sorted ranges that are known to belong to other owners.
///
/// # Errors
/// Fails if the list of mappings cannot be read.
pub fn regions(
    plan: &Plan,
    memory: &impl HeapMemory,
    others: &[(u64, u64)],
) -> Result<Regions, super::Error> {
    let mappings = memory.mappings()?;
    let mut search = Search { plan, memory, mappings: &mappings, found: Regions::default() };
    let mut counted = None;
    let mut main_pieces = Vec::new();
    for heap in &plan.heaps {
        let parameters = heap
            .parameters_avma
            .and_then(|address_avma| Parameters::read(memory, &plan.layout, address_avma));
        search.heaps_of(heap, parameters, &mut main_pieces);
        // Blocks of several libraries cannot be told apart.
        counted = if plan.heaps.len() == 1 { parameters } else { None };
    }
    search.anonymous(counted, &main_pieces, others);
    let mut found = search.found;
    found.regions.sort_unstable_by_key(|region| region.start_avma);
    Ok(found)
}

struct Search<'a, M> {
    plan: &'a Plan,
    memory: &'a M,
    mappings: &'a [Mapping],
    found: Regions,
}

impl<M: HeapMemory> Search<'_, M> {
    /// Adds the arenas of one libc.
    fn heaps_of(
        &mut self,
        heap: &MainHeap,
        parameters: Option<Parameters>,
        main_pieces: &mut Vec<MainPieces>,
    ) {
        let layout = &self.plan.layout;
        let mut findings = Vec::new();
        let arenas = arena::ring(self.memory, layout, heap.arena_avma, &mut findings);
        let huge_page_bytes = parameters.map_or(0, |parameters| parameters.huge_page_bytes);
        for (place, one) in arenas.iter().enumerate() {
            let number = self.found.arena_count;
            self.found.arena_count += 1;
            self.found.arena_bytes = self.found.arena_bytes.saturating_add(one.system_bytes);
            if one.top_avma == 0 {
                continue;
            }
            if place == 0 {
                let is_in_brk = self.brk(number, one.top_avma, parameters);
                if !is_in_brk || !one.is_contiguous {
                    main_pieces.push(MainPieces { arena: number, top_avma: one.top_avma });
                }
                if !is_in_brk {
                    self.found.regions.push(Region {
                        start_avma: one.top_avma,
                        end_avma: one.top_avma.saturating_add(one.top_bytes),
                        arena: number,
                        kind: RegionKind::MainPiece,
                    });
                }
                continue;
            }
            for part in arena::sub_heaps(self.memory, layout, one, huge_page_bytes, &mut findings) {
                self.found.regions.push(Region {
                    start_avma: part.start_avma,
                    end_avma: part.end_avma,
                    arena: number,
                    kind: RegionKind::ArenaHeap,
                });
            }
        }
    }

    /// Adds the main arena's memory by brk. Returns whether its top lies there.
    fn brk(&mut self, arena: u32, top_avma: u64, parameters: Option<Parameters>) -> bool {
        let start_avma = parameters.map_or(0, |parameters| parameters.brk_start_avma);
        let mut has_top = false;
        for mapping in self.mappings.iter().filter(|mapping| mappings::is_brk(mapping)) {
            has_top |= mapping.contains(top_avma);
            let start_avma = start_avma.next_multiple_of(ALIGNMENT_BYTES).max(mapping.start_avma);
            if start_avma < mapping.end_avma {
                self.found.regions.push(Region {
                    start_avma,
                    end_avma: mapping.end_avma,
                    arena,
                    kind: RegionKind::Brk,
                });
            }
        }
        has_top
    }

    /// Adds blocks with their own mapping, and the main arena's pieces outside brk.
    fn anonymous(&mut self, counted: Option<Parameters>, main_pieces: &[MainPieces], others: &[(u64, u64)]) {
        if counted.is_some_and(|counted| counted.mapped_count == 0) && main_pieces.is_empty() {
            return;
        }
        let mut taken: Vec<(u64, u64)> =
            self.found.regions.iter().map(|region| (region.start_avma, region.end_avma)).collect();
        taken.extend_from_slice(others);
        taken.sort_unstable();
        let mut scan = Scan::new(&self.plan.layout, false);
        // Downwards from the highest address, as the walk does.
        for mapping in self.mappings.iter().rev().filter(|mapping| mappings::is_private_anonymous(mapping)) {
            if main_pieces.is_empty() && counted.is_some_and(|counted| is_as_counted(&scan, counted)) {
                break;
            }
            let mut start_avma = mapping.start_avma;
            let first = taken.partition_point(|(_, end_avma)| *end_avma <= start_avma);
            let inside = taken[first..].iter().take_while(|(start, _)| *start < mapping.end_avma);
            for (taken_start_avma, taken_end_avma) in inside.chain([&(mapping.end_avma, mapping.end_avma)]) {
                if start_avma < *taken_start_avma {
                    scan.look(self.memory, (start_avma, *taken_start_avma), main_pieces);
                }
                start_avma = start_avma.max(*taken_end_avma);
            }
        }
        self.found.regions.extend(scan.blocks.iter().map(|block| Region {
            start_avma: block.chunk_avma - block.lead_bytes,
            end_avma: block.chunk_avma + block.size_bytes,
            arena: 0,
            kind: RegionKind::MappedBlock,
        }));
        self.found.regions.extend(scan.segments.iter().map(|segment| Region {
            start_avma: segment.start_avma,
            end_avma: segment.start_avma + segment.chunks().map(|chunk| chunk.size_bytes).sum::<u64>(),
            arena: segment.arena,
            kind: RegionKind::MainPiece,
        }));
    }
}
