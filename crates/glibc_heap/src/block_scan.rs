//! Finds blocks with a mapping of their own, and pieces of a main heap that can no longer use brk.
//! Both begin at a page of anonymous memory that no pointer of malloc's leads to.
//!
//! ```text
//! a block of its own       a block of its own, aligned          a piece of the main heap
//! page: 0 | size+2 | ...   page: ... lead ...                   page: 0 | size+1 | chunk | size+1 | chunk ... 16+1, 16+1 |
//!                                | lead | size+2 | block         (or the arena's top in place of the marks)
//! ```

use super::chunk_walk::{Contradiction, Piece, WalkEnd, walk_chunks};
use super::heap_memory::HeapMemory;
use super::layout::{
    ALIGNMENT_BYTES, FLAGS, HEADER_BYTES, IS_MMAPPED, Layout, MIN_CHUNK_BYTES, PREV_INUSE, is_chunk_size,
    word,
};
use super::segment::Segment;
use super::thread_caches::CacheCandidates;
use heapr_proc::page_bytes;

/// A block with its own mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MappedBlock {
    pub(super) chunk_avma: u64,
    /// Size of the chunk; the mapping begins `lead_bytes` before the chunk.
    pub(super) size_bytes: u64,
    pub(super) lead_bytes: u64,
}

/// Reads the headers of mapped chunks, as the glibc version lays them out.
#[derive(Debug, Clone, Copy)]
struct MappedShape {
    /// Bytes behind the chunk, [`Layout::mapped_rest_bytes`].
    rest_bytes: u64,
}

impl MappedShape {
    /// Bytes from the chunk to the end of its mapping.
    fn size_bytes(self, header: &[u8; 16]) -> u64 {
        (word(header, 8) & !FLAGS).saturating_add(self.rest_bytes)
    }

    /// Bytes from the beginning of the mapping to the chunk.
    fn lead_bytes(self, header: &[u8; 16]) -> u64 {
        /// Flag in the first word that the block has huge pages; exists in versions with a rest
        /// behind the chunk.
        const HAS_HUGE_PAGES: u64 = 1;
        if self.rest_bytes == 0 { word(header, 0) } else { word(header, 0) & !HAS_HUGE_PAGES }
    }
}

/// A main arena whose pieces are searched for besides mapped blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct MainPieces {
    pub(super) arena: u32,
    pub(super) top_avma: u64,
}

/// State and result of the scan.
#[derive(Debug)]
pub(super) struct Scan {
    /// Whether the header of an aligned block is searched for on every page of its mapping.
    /// `mremap` may have moved the block to an address that is a multiple of a page only.
    pub(super) is_thorough: bool,
    pub(super) blocks: Vec<MappedBlock>,
    pub(super) segments: Vec<Segment>,
    pub(super) contradictions: Vec<Contradiction>,
    pub(super) caches: CacheCandidates,
    window: Vec<u8>,
    shape: MappedShape,
}

/// Number of pages per query for touched pages.
const BATCH_PAGES: u64 = 4096;
/// Number of pages whose second word is read with one system call. One call per page took two
/// thirds of the time for a Node server, most of whose memory is V8's.
const BATCH_WORDS: usize = 256;

/// Whether memory of malloc's may begin at a page with this second word.
fn may_begin(size_field: u64) -> bool {
    matches!(size_field & FLAGS, IS_MMAPPED | PREV_INUSE) && is_chunk_size(size_field)
}

impl Scan {
    pub(super) fn new(layout: &Layout, is_thorough: bool) -> Self {
        Self {
            is_thorough,
            blocks: Vec::new(),
            segments: Vec::new(),
            contradictions: Vec::new(),
            caches: CacheCandidates::new(layout.cache),
            window: Vec::new(),
            shape: MappedShape { rest_bytes: layout.mapped_rest_bytes },
        }
    }

    /// Bytes of the mappings of all blocks found.
    pub(super) fn mapping_bytes(&self) -> u64 {
        self.blocks.iter().map(|block| block.size_bytes + block.lead_bytes).sum()
    }

    /// Examines each page of `start_avma..end_avma`, one anonymous mapping.
    pub(super) fn look(
        &mut self,
        memory: &impl HeapMemory,
        (start_avma, end_avma): (u64, u64),
        main_pieces: &[MainPieces],
    ) {
        let mut next_avma = start_avma;
        while next_avma < end_avma {
            let page_count = ((end_avma - next_avma) / page_bytes()).clamp(1, BATCH_PAGES);
            let touched = memory.touched_pages(next_avma, page_count as usize);
            let is_touched = |page: &u64| {
                touched.as_ref().is_none_or(|touched| touched.get(*page as usize) != Some(&false))
            };
            let batch_avma = next_avma;
            let pages = (0..page_count).filter(is_touched).map(|page| batch_avma + page * page_bytes());
            next_avma = batch_avma + page_count * page_bytes();
            let pages: Vec<u64> = pages.collect();
            let mut seen_to_avma = batch_avma;
            for pages in pages.chunks(BATCH_WORDS) {
                let mut sizes = [None; BATCH_WORDS];
                let mut places = [0; BATCH_WORDS];
                places.iter_mut().zip(pages).for_each(|(place, page_avma)| *place = page_avma + 8);
                memory.read_words(&places[..pages.len()], &mut sizes[..pages.len()]);
                for (page_avma, size_field) in pages.iter().zip(sizes) {
                    if *page_avma >= seen_to_avma && size_field.is_some_and(may_begin) {
                        let bytes = self.look_at_page(memory, *page_avma, end_avma, main_pieces);
                        seen_to_avma = page_avma + bytes.max(page_bytes());
                    }
                }
            }
            next_avma = next_avma.max(seen_to_avma);
        }
    }

    /// Looks for a block or a piece at `page_avma`. Returns the bytes that it occupies; 0 if the
    /// page begins neither.
    fn look_at_page(
        &mut self,
        memory: &impl HeapMemory,
        page_avma: u64,
        end_avma: u64,
        main_pieces: &[MainPieces],
    ) -> u64 {
        let mut header = [0; 16];
        if memory.read(page_avma, &mut header) != header.len() || self.shape.lead_bytes(&header) != 0 {
            // A header with a lead belongs to an aligned block inside of a mapping. The block is
            // found from the mapping's first page.
            return 0;
        }
        let size_field = word(&header, 8);
        if size_field & FLAGS == IS_MMAPPED && is_chunk_size(size_field) {
            let rest_bytes = end_avma - page_avma;
            let size_bytes = self.shape.size_bytes(&header);
            let shape = self.shape;
            let aligned =
                self.is_thorough.then(|| moved_block_at(memory, shape, page_avma, size_bytes, rest_bytes));
            let block = aligned.flatten();
            if let Some(block) = block.or_else(|| block_at(memory, shape, page_avma, size_bytes, rest_bytes))
            {
                self.blocks.push(block);
                return block.lead_bytes + block.size_bytes;
            }
        }
        let may_begin_piece = size_field & FLAGS == PREV_INUSE && is_chunk_size(size_field);
        if !may_begin_piece {
            return 0;
        }
        for pieces in main_pieces {
            let piece = Piece {
                start_avma: page_avma,
                end_avma,
                top_avma: pieces.top_avma,
                is_main: true,
                begins_arena: false,
            };
            let mut segment = Segment::new(page_avma, pieces.arena);
            let mut contradictions = Vec::new();
            let mut own_caches = self.caches.of_same_kind();
            let end = walk_chunks(
                memory,
                &piece,
                &mut self.window,
                &mut segment,
                &mut own_caches,
                &mut contradictions,
            );
            let behind_avma = match end {
                WalkEnd::Fence { behind_avma } if behind_avma % page_bytes() == 0 => behind_avma,
                WalkEnd::Top => pieces.top_avma.next_multiple_of(page_bytes()),
                _ => continue,
            };
            if segment.is_empty() && end != WalkEnd::Top {
                continue;
            }
            self.segments.push(segment);
            self.contradictions.append(&mut contradictions);
            self.caches.merge(own_caches);
            return behind_avma - page_avma;
        }
        0
    }
}

/// The block whose mapping begins at `page_avma` with a header that states `size_bytes`; `None` if
/// the numbers contradict each other.
///
/// An aligned block has its own header further on. The header of the whole mapping stays in place
/// with the old size, and the block's own one counts.
fn block_at(
    memory: &impl HeapMemory,
    shape: MappedShape,
    page_avma: u64,
    size_bytes: u64,
    rest_bytes: u64,
) -> Option<MappedBlock> {
    if !size_bytes.is_multiple_of(page_bytes()) {
        return None;
    }
    let first_block_avma = page_avma + HEADER_BYTES;
    for alignment in (5..47).map(|shift| 1_u64 << shift).take_while(|alignment| *alignment < rest_bytes) {
        // The lead is at least a whole chunk: the block may lie one alignment further.
        let nearest_avma = first_block_avma.next_multiple_of(alignment);
        for block_avma in [nearest_avma, nearest_avma + alignment] {
            if let Some(block) = aligned_block(memory, shape, page_avma, block_avma, rest_bytes) {
                return Some(block);
            }
        }
    }
    (size_bytes <= rest_bytes).then_some(MappedBlock { chunk_avma: page_avma, size_bytes, lead_bytes: 0 })
}

/// The block of a moved mapping that begins at `page_avma`: its header is searched for before each
/// page.
fn moved_block_at(
    memory: &impl HeapMemory,
    shape: MappedShape,
    page_avma: u64,
    size_bytes: u64,
    rest_bytes: u64,
) -> Option<MappedBlock> {
    let end_avma = page_avma + size_bytes.min(rest_bytes);
    let mut block_avma = page_avma + page_bytes();
    while size_bytes.is_multiple_of(page_bytes()) && block_avma < end_avma {
        if let Some(block) = aligned_block(memory, shape, page_avma, block_avma, rest_bytes) {
            return Some(block);
        }
        block_avma += page_bytes();
    }
    None
}

/// The block at `block_avma`, if its header states that its mapping begins at `page_avma`.
fn aligned_block(
    memory: &impl HeapMemory,
    shape: MappedShape,
    page_avma: u64,
    block_avma: u64,
    rest_bytes: u64,
) -> Option<MappedBlock> {
    let chunk_avma = block_avma - HEADER_BYTES;
    let lead_bytes = chunk_avma - page_avma;
    let mut header = [0; 16];
    if lead_bytes < ALIGNMENT_BYTES
        || lead_bytes + MIN_CHUNK_BYTES > rest_bytes
        || memory.read(chunk_avma, &mut header) != header.len()
    {
        return None;
    }
    let (recorded_bytes, size_field) = (shape.lead_bytes(&header), word(&header, 8));
    let own_bytes = shape.size_bytes(&header);
    let is_own = recorded_bytes == lead_bytes
        && size_field & FLAGS == IS_MMAPPED
        && is_chunk_size(size_field)
        && (own_bytes + lead_bytes).is_multiple_of(page_bytes())
        && own_bytes <= rest_bytes - lead_bytes;
    is_own.then_some(MappedBlock { chunk_avma, size_bytes: own_bytes, lead_bytes })
}
