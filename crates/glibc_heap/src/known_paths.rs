//! Chooses the true one of several runs of chunks by the number of known chunks in it.
//!
//! Behind a damaged chunk there may be stale headers inside of blocks, and the program may still
//! hold addresses of blocks freed long ago. One chunk with a pointer to it proves little. In the
//! true run nearly all chunks are known:
//!
//! ```text
//! true     | k | k | k |   | k | k | k | k | ...     k  a block that the program points to, or a free chunk by both of its ends
//! stale    . k------------------------>| k | ...     leaps to a boundary by what it was once
//!            ^ they meet -------------->^
//! ```

use std::collections::HashSet;

use super::heap_memory::HeapMemory;
use super::layout::{ALIGNMENT_BYTES, FLAGS, PREV_INUSE};
use super::page_cache::PageCache;
use super::references::referenced;
use heapr_proc::Mapping;

/// Largest number of chunks of a run that are compared. Runs meet after a few chunks, or nothing is
/// known.
const MOST_STEPS: usize = 512;

/// Start of the run with the most known chunks, among those that begin at `starts` (by address).
pub(super) fn best_known<M: HeapMemory>(
    memory: &M,
    mappings: &[Mapping],
    pages: &mut PageCache<'_, M>,
    starts: &[u64],
) -> Option<u64> {
    let runs: Vec<Vec<u64>> = starts.iter().map(|&start_avma| run(pages, start_avma)).collect();
    let mut chunks: Vec<u64> = runs.iter().flatten().copied().collect();
    chunks.sort_unstable();
    chunks.dedup();
    let is_referenced = referenced(memory, mappings, &chunks);
    let known = chunks.iter().zip(is_referenced);
    let known: HashSet<u64> = known
        .filter(|&(&chunk_avma, is_referenced)| is_referenced || is_free_by_both_ends(pages, chunk_avma))
        .map(|(&chunk_avma, _)| chunk_avma)
        .collect();
    let best = (0..runs.len()).reduce(|best, later| {
        let is_better = is_more_known(&runs[best], &runs[later], |chunk_avma| known.contains(&chunk_avma));
        if is_better { later } else { best }
    });
    best.map(|best| starts[best])
}

fn run<M: HeapMemory>(pages: &mut PageCache<'_, M>, start_avma: u64) -> Vec<u64> {
    let mut next_avma = Some(start_avma);
    std::iter::from_fn(|| {
        let chunk_avma = next_avma?;
        next_avma = pages
            .word(chunk_avma.wrapping_add(8))
            .and_then(|size_field| chunk_avma.checked_add((size_field & !FLAGS).max(ALIGNMENT_BYTES)));
        Some(chunk_avma)
    })
    .take(MOST_STEPS)
    .collect()
}

/// Whether the run that begins later has more known chunks, up to the chunk where both meet. Runs
/// that begin inside the other one are parts of it.
fn is_more_known(first: &[u64], later: &[u64], is_known: impl Fn(u64) -> bool) -> bool {
    let Some(&meeting_avma) = later.iter().find(|&chunk_avma| first.binary_search(chunk_avma).is_ok()) else {
        return false;
    };
    let until = |run: &[u64]| {
        let chunks = &run[..run.partition_point(|&chunk_avma| chunk_avma < meeting_avma)];
        (chunks.len(), chunks.iter().filter(|&&chunk_avma| is_known(chunk_avma)).count())
    };
    match (until(first), until(later)) {
        // Runs of leaked blocks: a chance value leaps over chunks, and the run with more chunks is
        // the true one.
        ((first_steps, 0), (later_steps, 0)) => later_steps > first_steps,
        ((_, 0), _) => true,
        // Some freed blocks are still pointed to, but not most of them.
        ((_, first_known), (later_steps, later_known)) => {
            later_known > first_known && later_known * 2 >= later_steps
        }
    }
}

/// Whether the chunk is free by the flag behind it, and the copy of its size there agrees.
pub(super) fn is_free_by_both_ends<M: HeapMemory>(pages: &mut PageCache<'_, M>, chunk_avma: u64) -> bool {
    let Some(size_field) = pages.word(chunk_avma + 8) else { return false };
    let size_bytes = size_field & !FLAGS;
    let next_avma = chunk_avma.saturating_add(size_bytes);
    pages.word(next_avma) == Some(size_bytes)
        && pages.word(next_avma.saturating_add(8)).is_some_and(|next_field| next_field & PREV_INUSE == 0)
}

#[cfg(test)]
mod tests {
    use super::is_more_known;

    fn is_later_better(first: &[u64], later: &[u64], known: &[u64]) -> bool {
        is_more_known(first, later, |chunk_avma| known.contains(&chunk_avma))
    }

    #[test]
    fn one_stale_pointer_does_not_leap_over_blocks_that_live() {
        let (stale, live) = ([16, 160, 192], [32, 64, 96, 128, 160, 192]);
        assert!(is_later_better(&stale, &live, &[16, 32, 96, 128, 160]));
        // Stale headers inside of a live block, one of which is still pointed to.
        assert!(!is_later_better(&stale, &live, &[16, 96, 160]));
        assert!(!is_later_better(&stale, &live, &[16, 32, 160]));
    }

    #[test]
    fn without_pointers_the_run_of_more_chunks_is_taken() {
        assert!(is_later_better(&[16, 160], &[32, 96, 160], &[160]));
        assert!(!is_later_better(&[16, 96, 160], &[32, 160], &[160]));
        assert!(is_later_better(&[16, 160], &[32, 96, 160], &[32]));
    }

    #[test]
    fn a_part_of_a_run_and_one_that_never_meets_it_are_not_better() {
        assert!(!is_later_better(&[16, 32, 64], &[32, 64], &[32, 64]));
        assert!(!is_later_better(&[16, 48], &[32, 64], &[32, 64]));
    }
}
