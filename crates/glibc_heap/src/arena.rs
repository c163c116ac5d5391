//! Arenas: recognition, reading, the ring of arenas, and the heaps of arenas that do not use brk.

use heapr_known::glibc::ARENA_HEAP_BYTES;
use heapr_proc::page_bytes;

use super::finding::Finding;
use super::heap_memory::HeapMemory;
use super::layout::{
    ADDRESS_LIMIT, ALIGNMENT_BYTES, FLAGS, HEADER_BYTES, Layout, StateOffsets, half, is_chunk_size, state,
    word,
};

/// Judgement of a position whose ring pointer is plausible for an arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArenaShape {
    /// Bins are consistent, up to some faults.
    Initialised {
        /// Number of inconsistent bins.
        faults: usize,
    },
    /// All bins are zero: malloc was never called.
    Untouched,
    /// Other data.
    Other,
}

/// Whether `next` points to the arena itself, or behind the header of a page-aligned heap.
pub(super) fn has_plausible_ring(bytes: &[u8], arena_avma: u64, layout: &Layout) -> bool {
    let next = word(bytes, layout.state.next);
    next == arena_avma
        || (next > page_bytes() && next < ADDRESS_LIMIT && next % page_bytes() == layout.heap_info_bytes)
}

/// Judges the arena in `bytes` by its bins.
pub(super) fn shape(memory: &impl HeapMemory, layout: &Layout, bytes: &[u8], arena_avma: u64) -> ArenaShape {
    let offsets = &layout.state;
    /// Largest number of faults in an arena: a running target may change a few bins while they are
    /// read.
    const MOST_FAULTS: usize = 7;
    let bins = &bytes[offsets.bins..offsets.bins + state::BIN_COUNT * 16];
    if bins.iter().all(|byte| *byte == 0) {
        let is_empty = word(bytes, offsets.top) == 0 && word(bytes, offsets.next) == arena_avma;
        return if is_empty { ArenaShape::Untouched } else { ArenaShape::Other };
    }
    let faults = bin_faults(memory, offsets, bytes, arena_avma).len();
    let top = word(bytes, offsets.top);
    let has_top = top.is_multiple_of(ALIGNMENT_BYTES) && top != 0 && top < ADDRESS_LIMIT;
    if has_top && faults <= MOST_FAULTS { ArenaShape::Initialised { faults } } else { ArenaShape::Other }
}

/// Address at which bin `bin` poses as a chunk.
fn bin_avma(offsets: &StateOffsets, arena_avma: u64, bin: usize) -> u64 {
    arena_avma + (offsets.bins + bin * 16) as u64 - HEADER_BYTES
}

/// Faults of the bins, at most one of each: name and value. A bin must point to itself both ways,
/// or to chunks that point back.
fn bin_faults(
    memory: &impl HeapMemory,
    offsets: &StateOffsets,
    bytes: &[u8],
    arena_avma: u64,
) -> Vec<(&'static str, u64)> {
    let ends = |bin: usize| {
        let at = offsets.bins + bin * 16;
        (word(bytes, at), word(bytes, at + 8))
    };
    let is_filled = |bin: usize| {
        let own_avma = bin_avma(offsets, arena_avma, bin);
        ends(bin).0 != own_avma && ends(bin).1 != own_avma
    };
    // All words are read by one call: many arenas have more than a thousand.
    let mut places = [0; state::BIN_COUNT * 2];
    let mut words = [None; state::BIN_COUNT * 2];
    let filled = (0..state::BIN_COUNT).filter(|&bin| is_filled(bin));
    let links_back = |bin: usize| [ends(bin).0.wrapping_add(24), ends(bin).1.wrapping_add(16)];
    let mut count = 0;
    for (place, end) in places.iter_mut().zip(filled.flat_map(links_back)) {
        *place = end;
        count += 1;
    }
    memory.read_words(&places[..count], &mut words[..count]);
    let mut words = words.into_iter();
    let mut faults = Vec::new();
    for bin in 0..state::BIN_COUNT {
        let own_avma = bin_avma(offsets, arena_avma, bin);
        let (first, last) = ends(bin);
        match (first == own_avma, last == own_avma) {
            (true, true) => {}
            (true, false) => faults.push(("the end of an empty bin", last)),
            (false, true) => faults.push(("the beginning of an empty bin", first)),
            (false, false) => {
                let (before, behind) = (words.next().flatten(), words.next().flatten());
                let points_back = |chunk_avma: u64, word: Option<u64>| {
                    chunk_avma.is_multiple_of(ALIGNMENT_BYTES)
                        && chunk_avma < ADDRESS_LIMIT
                        && word == Some(own_avma)
                };
                if !points_back(first, before) {
                    faults.push(("the beginning of a bin", first));
                } else if !points_back(last, behind) {
                    faults.push(("the end of a bin", last));
                }
            }
        }
    }
    faults
}

fn read_word(memory: &impl HeapMemory, address_avma: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (memory.read(address_avma, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
}

/// Fields of an arena.
#[derive(Debug, Clone)]
pub(super) struct Arena {
    pub(super) address_avma: u64,
    pub(super) is_contiguous: bool,
    pub(super) fastbins: [u64; state::FASTBIN_COUNT],
    /// Address of the top chunk; 0 if the arena has no memory yet.
    pub(super) top_avma: u64,
    pub(super) top_bytes: u64,
    pub(super) system_bytes: u64,
    next_avma: u64,
}

impl Arena {
    /// Reads the arena at `address_avma`. The error is the name and value of an impossible field.
    fn read(
        memory: &impl HeapMemory,
        layout: &Layout,
        address_avma: u64,
    ) -> Result<Self, (&'static str, u64)> {
        let offsets = &layout.state;
        let mut bytes = [0; state::MOST_BYTES];
        let bytes = &mut bytes[..offsets.bytes];
        if memory.read(address_avma, bytes) != bytes.len() {
            return Err(("its memory, which cannot be read,", address_avma));
        }
        let mut arena = Self {
            address_avma,
            is_contiguous: half(bytes, state::FLAGS) & state::NONCONTIGUOUS == 0,
            fastbins: [0; state::FASTBIN_COUNT],
            top_avma: word(bytes, offsets.top),
            top_bytes: 0,
            system_bytes: word(bytes, offsets.system_bytes),
            next_avma: word(bytes, offsets.next),
        };
        if let Some(fastbins) = offsets.fastbins {
            for (bin, head) in arena.fastbins.iter_mut().enumerate() {
                *head = word(bytes, fastbins + bin * 8);
            }
        }
        let is_untouched = arena.top_avma == 0;
        // The top of a fresh arena points into the arena itself.
        if is_untouched || arena.top_avma == bin_avma(offsets, address_avma, 0) {
            arena.top_avma = 0;
            return Ok(arena);
        }
        if let Some(fault) = bin_faults(memory, offsets, bytes, address_avma).first() {
            return Err(*fault);
        }
        if !arena.top_avma.is_multiple_of(ALIGNMENT_BYTES) || arena.top_avma >= ADDRESS_LIMIT {
            return Err(("top", arena.top_avma));
        }
        match read_word(memory, arena.top_avma + 8) {
            Some(size_field) if is_chunk_size(size_field) => arena.top_bytes = size_field & !FLAGS,
            Some(size_field) => return Err(("the size of top", size_field)),
            None => return Err(("top", arena.top_avma)),
        }
        Ok(arena)
    }
}

/// Reads the ring that begins with the main arena. A broken link becomes a finding.
pub(super) fn ring(
    memory: &impl HeapMemory,
    layout: &Layout,
    main_avma: u64,
    findings: &mut Vec<Finding>,
) -> Vec<Arena> {
    /// Largest number of arenas: more than eight times any machine's cores. It ends a ring that
    /// leads elsewhere.
    const MOST_ARENAS: usize = 65_536;
    let mut arenas: Vec<Arena> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let mut arena_avma = main_avma;
    loop {
        match Arena::read(memory, layout, arena_avma) {
            Ok(arena) => {
                seen.insert(arena_avma);
                let next_avma = arena.next_avma;
                arenas.push(arena);
                if next_avma == main_avma {
                    return arenas;
                }
                if seen.contains(&next_avma) || arenas.len() == MOST_ARENAS {
                    findings.push(Finding::BrokenArena {
                        arena_avma,
                        what: "the next arena",
                        value: next_avma,
                    });
                    return arenas;
                }
                arena_avma = next_avma;
            }
            Err((what, value)) => {
                findings.push(Finding::BrokenArena { arena_avma, what, value });
                return arenas;
            }
        }
    }
}

/// One heap of an arena that does not use brk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubHeap {
    /// Start of the mapping.
    pub(super) start_avma: u64,
    /// Address of the first chunk.
    pub(super) first_chunk_avma: u64,
    /// Exclusive end of the accessible memory.
    pub(super) end_avma: u64,
    /// Whether the heap holds the arena's record.
    pub(super) is_first: bool,
}

/// Heaps of `arena`, newest first; the newest holds the top.
pub(super) fn sub_heaps(
    memory: &impl HeapMemory,
    layout: &Layout,
    arena: &Arena,
    huge_page_bytes: u64,
    findings: &mut Vec<Finding>,
) -> Vec<SubHeap> {
    // Usual alignment of heaps, equal to their largest size: 64 MiB, or four huge pages.
    let mut heaps: Vec<SubHeap> = Vec::new();
    let broken = |what, value| Finding::BrokenArena { arena_avma: arena.address_avma, what, value };
    let sizes = [huge_page_bytes.saturating_mul(4), ARENA_HEAP_BYTES, 8 << 20, 4 << 30];
    let sizes = sizes.iter().filter(|size| size.is_power_of_two());
    let starts = sizes.map(|size| arena.top_avma & !(size - 1));
    let newest = starts.into_iter().find(|start| read_word(memory, *start) == Some(arena.address_avma));
    let Some(mut start_avma) = newest else {
        findings.push(broken("top, which lies in no heap of it,", arena.top_avma));
        return heaps;
    };
    let mut seen = std::collections::HashSet::new();
    while start_avma != 0 {
        let mut header = [0; 24];
        let is_read = memory.read(start_avma, &mut header) == header.len();
        if !is_read || !seen.insert(start_avma) || word(&header, 0) != arena.address_avma {
            findings.push(broken("the heap before", start_avma));
            break;
        }
        let (previous_avma, size_bytes) = (word(&header, 8), word(&header, 16));
        if size_bytes < layout.heap_info_bytes + HEADER_BYTES || size_bytes > 4 << 30 {
            findings.push(broken("the size of a heap", size_bytes));
            break;
        }
        let behind_header_avma = start_avma + layout.heap_info_bytes;
        let is_first = behind_header_avma == arena.address_avma;
        let first_chunk_avma = if is_first {
            (behind_header_avma + layout.state.bytes as u64).next_multiple_of(ALIGNMENT_BYTES)
        } else {
            behind_header_avma
        };
        heaps.push(SubHeap { start_avma, first_chunk_avma, end_avma: start_avma + size_bytes, is_first });
        start_avma = previous_avma;
    }
    heaps
}
