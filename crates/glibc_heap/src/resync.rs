//! Finds where chunks begin again behind foreign or damaged memory.
//!
//! A run of chunks is recognised by its end: it leads to the arena's top, or to the marks at a
//! piece's end. A pass from the end backwards sets one bit per 16 bytes: whether a chunk there
//! would lead to the end.
//!
//! ```text
//! foreign memory . . f . . . T-------- | ----- | -- stale headers -- | ...        T is the first true chunk
//!                    f --------------------->|   a chance value that leads to a boundary
//! ```
//!
//! The first such address with further evidence is chosen. Evidence is a pointer to its block, a
//! link of a free list, or a copy of its size behind it. Earlier addresses that lead to this one
//! count as well: they may be leaked blocks. Words that hold a fitting distance by chance (foreign
//! words, headers left inside of a larger block) have no evidence.
//!
//! Without any evidence the first address is chosen, unless a later one takes more steps to the
//! chunk where both meet. Behind a damaged chunk all candidates lie among chunks, and their runs
//! are compared by the number of known chunks ([`best_known`]).

use super::chunk_walk::{Piece, may_stand_in};
use super::heap_memory::HeapMemory;
use super::known_paths::{best_known, is_free_by_both_ends};
use super::layout::{ALIGNMENT_BYTES, FENCE_BYTES, FLAGS, PREV_INUSE, word};
use super::page_cache::PageCache;
use super::references::referenced;
use heapr_proc::Mapping;

/// Kind of memory before the chunks that are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Memory that malloc never had: the first word of the first chunk was never written.
    ForeignMemory,
    /// Chunks, one of which cannot be read.
    DamagedChunks,
}

/// Address in `piece` from which chunks lead to its end; `None` without one.
pub(super) fn first_consistent<M: HeapMemory>(
    memory: &M,
    mappings: &[Mapping],
    piece: &Piece,
    before: Before,
) -> Option<u64> {
    /// Largest number of candidates that are compared; behind random words there are a few.
    const MOST_STARTS: usize = 64;
    /// Largest gap in bytes. Two bits per 32 bytes of the target make at most 512 MiB for 64 GiB.
    const MOST_BYTES: u64 = 64 << 30;
    const WINDOW_BYTES: u64 = 256 << 10;
    let start_avma = piece.start_avma.next_multiple_of(ALIGNMENT_BYTES);
    let ends_at_top = piece.top_avma >= start_avma && piece.top_avma < piece.end_avma;
    let end_avma = if ends_at_top { piece.top_avma } else { piece.end_avma } & !(ALIGNMENT_BYTES - 1);
    if end_avma <= start_avma || end_avma - start_avma > MOST_BYTES {
        return None;
    }
    let place = |address_avma: u64| ((address_avma - start_avma) / ALIGNMENT_BYTES) as usize;
    let mut leads = Bits::new(place(end_avma) + 1);
    if ends_at_top {
        leads.set(place(end_avma));
    }
    let mut starts = std::collections::VecDeque::new();
    let mut bytes = vec![0; WINDOW_BYTES as usize + FENCE_BYTES as usize];
    let mut window_end_avma = end_avma;
    while window_end_avma > start_avma {
        let window_start_avma = window_end_avma.saturating_sub(WINDOW_BYTES).max(start_avma);
        // One header more, so that the second mark of a pair is seen.
        let wanted = (window_end_avma - window_start_avma + FENCE_BYTES) as usize;
        let length = memory.read(window_start_avma, &mut bytes[..wanted]);
        bytes[length..wanted].fill(0);
        let mut chunk_avma = window_end_avma;
        while chunk_avma > window_start_avma {
            chunk_avma -= ALIGNMENT_BYTES;
            let offset = (chunk_avma - window_start_avma) as usize;
            let size_field = word(&bytes, offset + 8);
            let size_bytes = size_field & !FLAGS;
            let is_end = is_fence(&bytes, offset, piece.is_main);
            let next_avma = chunk_avma.saturating_add(size_bytes);
            let is_chunk = may_stand_in(size_field, piece.is_main)
                && next_avma <= end_avma
                && leads.get(place(next_avma.min(end_avma)));
            if is_end || is_chunk {
                leads.set(place(chunk_avma));
                let is_untouched = before == Before::DamagedChunks || word(&bytes, offset) == 0;
                if is_chunk && size_field & PREV_INUSE != 0 && is_untouched {
                    starts.push_front(chunk_avma);
                    starts.truncate(MOST_STARTS);
                }
            }
        }
        window_end_avma = window_start_avma;
    }
    let mut starts = Vec::from(starts);
    let mut pages = PageCache::new(memory);
    let first_avma = *starts.first()?;
    if starts.len() == 1 {
        return Some(first_avma);
    }
    if before == Before::DamagedChunks {
        return best_known(memory, mappings, &mut pages, &starts);
    }
    let is_referenced = referenced(memory, mappings, &starts);
    let mut proven = starts.iter().zip(is_referenced).filter(|(start_avma, is_referenced)| {
        *is_referenced || is_free_by_both_ends(&mut pages, **start_avma)
    });
    if let Some((&proven_avma, _)) = proven.next() {
        // Chunks that lead to the proven one may be leaked blocks.
        starts
            .retain(|&start_avma| start_avma <= proven_avma && leads_to(&mut pages, start_avma, proven_avma));
        return starts.first().copied();
    }
    // A chance value leaps over chunks.
    let longer =
        |best, start_avma| if takes_more_steps(&mut pages, start_avma, best) { start_avma } else { best };
    let first_avma = *starts.first()?;
    Some(starts.into_iter().fold(first_avma, longer))
}

/// Whether the chunks from `start_avma` reach `goal_avma`, or begin there.
fn leads_to<M: HeapMemory>(pages: &mut PageCache<'_, M>, start_avma: u64, goal_avma: u64) -> bool {
    let mut chunk_avma = start_avma;
    while chunk_avma < goal_avma {
        let Some(size_field) = pages.word(chunk_avma + 8) else { return false };
        chunk_avma = chunk_avma.saturating_add((size_field & !FLAGS).max(ALIGNMENT_BYTES));
    }
    chunk_avma == goal_avma
}

/// Whether the run from `later_avma` has more chunks than the run from `first_avma`, up to the
/// chunk where both meet.
fn takes_more_steps<M: HeapMemory>(pages: &mut PageCache<'_, M>, later_avma: u64, first_avma: u64) -> bool {
    /// Largest number of steps; true runs meet after a few.
    const MOST_STEPS: usize = 4096;
    let (mut first_avma, mut later_avma) = (first_avma, later_avma);
    let (mut first_steps, mut later_steps) = (0, 0);
    for _ in 0..MOST_STEPS {
        let (behind_avma, steps) = match first_avma.cmp(&later_avma) {
            std::cmp::Ordering::Equal => return later_steps > first_steps,
            std::cmp::Ordering::Less => (&mut first_avma, &mut first_steps),
            std::cmp::Ordering::Greater => (&mut later_avma, &mut later_steps),
        };
        let Some(size_field) = pages.word(*behind_avma + 8) else { return false };
        *behind_avma = behind_avma.saturating_add((size_field & !FLAGS).max(ALIGNMENT_BYTES));
        *steps += 1;
    }
    false
}

/// Whether the marks at a piece's end lie at `offset`: 16 and 16 in the main arena, 16 and 0 in
/// others.
fn is_fence(bytes: &[u8], offset: usize, is_main: bool) -> bool {
    let second = if is_main { FENCE_BYTES } else { 0 };
    let (first_field, second_field) = (word(bytes, offset + 8), bytes.get(offset + 24..offset + 32));
    first_field & !PREV_INUSE == FENCE_BYTES
        && second_field.is_some_and(|field| word(field, 0) == second | PREV_INUSE)
}

/// One bit per index.
struct Bits(Vec<u64>);

impl Bits {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn set(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    fn get(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 != 0
    }
}
