//! Singly linked lists of free chunks: fastbins and the bins of thread caches.

use super::finding::{BrokenEntry, Finding, ListKind};
use super::heap_memory::HeapMemory;
use super::layout::{ADDRESS_LIMIT, ALIGNMENT_BYTES, FLAGS, HEADER_BYTES, Layout};
use super::page_cache::PageCache;

/// A list and its bounds.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkList {
    pub(super) kind: ListKind,
    /// Address of the list's head.
    pub(super) head_avma: u64,
    /// Content of the head: address of a chunk in a fastbin, of a block in a thread cache.
    pub(super) first_avma: u64,
    /// Least and largest size of the list's chunks.
    pub(super) chunk_bytes: (u64, u64),
    /// Largest number of chunks that the list can hold.
    pub(super) most_entries: u64,
}

/// Follows `list` and adds its chunks to `free`. Returns the first impossible entry as a finding.
pub(super) fn follow<M: HeapMemory>(
    cache: &mut PageCache<'_, M>,
    layout: &Layout,
    list: &ChunkList,
    free: &mut Vec<u64>,
) -> Result<(), Finding> {
    let mut entry_avma = list.first_avma;
    let broken = |entry_avma, reason| Finding::BrokenList {
        list: list.kind,
        head_avma: list.head_avma,
        entry_avma,
        reason,
    };
    // Brent's algorithm: the remembered entry moves on after each power of two steps, and a circle
    // returns to it.
    let (mut kept_avma, mut steps, mut steps_until_moved) = (0, 0, 1);
    let mut count = 0;
    while entry_avma != 0 {
        if !entry_avma.is_multiple_of(ALIGNMENT_BYTES) {
            return Err(broken(entry_avma, BrokenEntry::Misaligned));
        }
        if count == list.most_entries {
            return Err(broken(entry_avma, BrokenEntry::TooLong(count)));
        }
        if entry_avma == kept_avma {
            return Err(broken(entry_avma, BrokenEntry::Circle));
        }
        steps += 1;
        if steps == steps_until_moved {
            (kept_avma, steps, steps_until_moved) = (entry_avma, 0, steps_until_moved * 2);
        }
        let block_avma = match list.kind {
            ListKind::Fastbin => entry_avma.wrapping_add(HEADER_BYTES),
            ListKind::ThreadCache => entry_avma,
        };
        if !(HEADER_BYTES..ADDRESS_LIMIT).contains(&block_avma) {
            return Err(broken(entry_avma, BrokenEntry::Unreadable));
        }
        let words = cache.word(block_avma - 8).zip(cache.word(block_avma));
        let Some((size_field, stored)) = words else {
            return Err(broken(entry_avma, BrokenEntry::Unreadable));
        };
        if !(list.chunk_bytes.0..=list.chunk_bytes.1).contains(&(size_field & !FLAGS)) {
            return Err(broken(entry_avma, BrokenEntry::WrongSize(size_field)));
        }
        free.push(block_avma - HEADER_BYTES);
        count += 1;
        entry_avma = layout.link(block_avma, stored);
    }
    Ok(())
}
