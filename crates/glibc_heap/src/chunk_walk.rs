//! Walks chunk by chunk through one piece of heap.

use super::heap_memory::HeapMemory;
use super::layout::{
    CacheLayout, FENCE_BYTES, FLAGS, HEADER_BYTES, IS_MMAPPED, NON_MAIN_ARENA, PREV_INUSE, is_chunk_size,
    word,
};
use super::segment::Segment;
use super::thread_caches::CacheCandidates;

/// Bounds of a piece of heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece {
    /// First chunk.
    pub(super) start_avma: u64,
    /// Exclusive end of the piece.
    pub(super) end_avma: u64,
    /// The arena's top; it may lie outside of the piece.
    pub(super) top_avma: u64,
    /// Whether the piece belongs to the main arena.
    pub(super) is_main: bool,
    /// Whether the first chunk is the arena's first: usually the cache of the thread that the arena
    /// was made for.
    pub(super) begins_arena: bool,
}

/// Reason why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkEnd {
    /// The arena's top was reached: the piece is walked completely.
    Top,
    /// The marks that malloc sets at the end of a piece were reached; memory of malloc's may lie
    /// again from `behind_avma` on.
    Fence { behind_avma: u64 },
    /// A chunk has an impossible size.
    Corrupt { chunk_avma: u64, size_field: u64 },
    /// Memory cannot be read.
    Unreadable { address_avma: u64 },
}

/// Whether a size field with these flags may stand in this piece.
pub(super) fn may_stand_in(size_field: u64, is_main: bool) -> bool {
    is_chunk_size(size_field)
        && size_field & IS_MMAPPED == 0
        && (!is_main || size_field & NON_MAIN_ARENA == 0)
}

/// A chunk that is marked free, but whose size differs from its copy in the chunk behind: the flag
/// or a size was overwritten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contradiction {
    pub(super) chunk_avma: u64,
    pub(super) size_bytes: u64,
    pub(super) recorded_bytes: u64,
}

/// Walks `piece` from its first chunk, adds each chunk to `segment`, and returns the reason of the
/// end. `window`: buffer for reads.
pub(super) fn walk_chunks(
    memory: &impl HeapMemory,
    piece: &Piece,
    window: &mut Vec<u8>,
    segment: &mut Segment,
    caches: &mut CacheCandidates,
    contradictions: &mut Vec<Contradiction>,
) -> WalkEnd {
    /// Largest number of contradictions that are reported one by one; a wholly overwritten heap has
    /// millions.
    const MOST_CONTRADICTIONS: usize = 64;
    let mut window = Window::new(memory, piece.end_avma, window);
    let mut chunk_avma = piece.start_avma;
    let Some((_, mut size_field)) = window.header(chunk_avma) else {
        return WalkEnd::Unreadable { address_avma: chunk_avma };
    };
    let mut is_first = piece.begins_arena;
    loop {
        if chunk_avma == piece.top_avma {
            return WalkEnd::Top;
        }
        let size_bytes = size_field & !FLAGS;
        if size_bytes == FENCE_BYTES {
            return WalkEnd::Fence { behind_avma: behind_fence(&mut window, chunk_avma) };
        }
        let next_avma = chunk_avma.wrapping_add(size_bytes);
        let is_inside = next_avma > chunk_avma && next_avma <= piece.end_avma.saturating_sub(HEADER_BYTES);
        if !may_stand_in(size_field, piece.is_main) || !is_inside {
            return WalkEnd::Corrupt { chunk_avma, size_field };
        }
        let Some((recorded_bytes, next_field)) = window.header(next_avma) else {
            return WalkEnd::Unreadable { address_avma: next_avma };
        };
        let mut looks_used = next_field & PREV_INUSE != 0;
        // The last piece of an abandoned heap: all of its top became the mark.
        if next_field & !FLAGS == 0 && !piece.is_main {
            return WalkEnd::Fence { behind_avma: next_avma + HEADER_BYTES };
        }
        if !looks_used && recorded_bytes != size_bytes {
            // The chunk counts as used, and is reported. Listing a block that may be free is the
            // smaller mistake.
            looks_used = true;
            if contradictions.len() < MOST_CONTRADICTIONS {
                contradictions.push(Contradiction { chunk_avma, size_bytes, recorded_bytes });
            }
        }
        if looks_used && caches.layout.fits(size_bytes) {
            window.look_at_cache(chunk_avma, is_first, caches);
        }
        segment.push(size_bytes, looks_used);
        is_first = false;
        chunk_avma = next_avma;
        size_field = next_field;
    }
}

/// Exclusive end of the marks: two chunk headers of 16 bytes, and a third one if the old top had no
/// more room.
fn behind_fence<M: HeapMemory>(window: &mut Window<'_, M>, fence_avma: u64) -> u64 {
    let mut behind_avma = fence_avma;
    for _ in 0..3 {
        match window.header(behind_avma) {
            Some((_, size_field)) if size_field & !FLAGS == FENCE_BYTES => behind_avma += FENCE_BYTES,
            _ => break,
        }
    }
    behind_avma
}

/// Buffer over the part of the target around the walk.
///
/// Small chunks make it larger, to spread the cost of calls. Large blocks make it smaller: the walk
/// jumps over their contents.
struct Window<'m, M> {
    memory: &'m M,
    limit_avma: u64,
    start_avma: u64,
    /// Content of the window if the memory stores what it reads.
    kept: Option<&'m [u8]>,
    /// Content of the window otherwise.
    bytes: &'m mut Vec<u8>,
    length: usize,
    reads_since_fill: usize,
    next_bytes: usize,
}

const SMALLEST_WINDOW_BYTES: usize = 4096;
/// Largest window in bytes. It fits the second-level cache of the machines it was measured on;
/// larger ones were slower.
const LARGEST_WINDOW_BYTES: usize = 512 << 10;
/// Number of headers below which a window was too large.
const FEW_HEADERS: usize = 16;

impl<'m, M: HeapMemory> Window<'m, M> {
    fn new(memory: &'m M, limit_avma: u64, bytes: &'m mut Vec<u8>) -> Self {
        Self {
            memory,
            limit_avma,
            start_avma: 0,
            kept: None,
            bytes,
            length: 0,
            reads_since_fill: 0,
            next_bytes: 64 << 10,
        }
    }

    /// Content of the window.
    #[inline]
    fn content(&self) -> &[u8] {
        match self.kept {
            Some(kept) => kept,
            None => self.bytes.get(..self.length).unwrap_or_default(),
        }
    }

    /// Reads the two words at `chunk_avma`. The window also covers the word behind them, if it
    /// exists: lists of free chunks run through it, and are followed in the stored windows.
    #[inline]
    fn header(&mut self, chunk_avma: u64) -> Option<(u64, u64)> {
        const LINK_BYTES: u64 = 8;
        let offset = chunk_avma.wrapping_sub(self.start_avma);
        if offset >= self.length as u64 || offset + HEADER_BYTES + LINK_BYTES > self.length as u64 {
            self.fill(chunk_avma)?;
            return Some((word(self.content(), 0), word(self.content(), 8)));
        }
        self.reads_since_fill += 1;
        let header = &self.content()[offset as usize..offset as usize + 16];
        Some((word(header, 0), word(header, 8)))
    }

    #[cold]
    fn fill(&mut self, chunk_avma: u64) -> Option<()> {
        self.next_bytes = if self.reads_since_fill >= FEW_HEADERS {
            (self.next_bytes * 2).min(LARGEST_WINDOW_BYTES)
        } else {
            (self.next_bytes / 2).max(SMALLEST_WINDOW_BYTES)
        };
        let wanted = self.limit_avma.saturating_sub(chunk_avma).min(self.next_bytes as u64) as usize;
        self.start_avma = chunk_avma;
        self.reads_since_fill = 0;
        self.kept = self.memory.read_kept(chunk_avma, wanted);
        self.length = match self.kept {
            Some(kept) => kept.len(),
            None => {
                self.bytes.resize(LARGEST_WINDOW_BYTES, 0);
                self.memory.read(chunk_avma, &mut self.bytes[..wanted])
            }
        };
        (self.length >= HEADER_BYTES as usize).then_some(())
    }

    /// Passes the content of a chunk to `caches`.
    fn look_at_cache(&mut self, chunk_avma: u64, is_first: bool, caches: &mut CacheCandidates) {
        let block_avma = chunk_avma + HEADER_BYTES;
        let offset = block_avma.wrapping_sub(self.start_avma);
        let bytes = caches.layout.bytes();
        let mut own = [0; CacheLayout::MOST_BYTES];
        let own = &mut own[..bytes];
        let inside = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.content().get(offset..offset.checked_add(bytes)?));
        let content = match inside {
            Some(content) => content,
            None if self.memory.read(block_avma, own) == bytes => own,
            None => return,
        };
        caches.consider(chunk_avma, content, is_first);
    }
}
