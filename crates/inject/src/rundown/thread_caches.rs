//! The threads' caches: chunks that look used and are free, in structures that are themselves blocks of the heap.
//!
//! A thread's pointer to its cache is in thread-local storage, at a place that only libc knows. The structure is
//! recognised instead: a chunk of its size, in which each bin has a count exactly if it has an entry, and whose entries
//! are chunks of that bin's size. One that is empty looks like any block of zeros: it counts if it is the first chunk of
//! its heap, where a thread's first allocation puts it, or if the word points to it that does so for the others, at one
//! distance below each thread's control block.

use std::collections::HashSet;

use super::chunk_lists::{ChunkList, follow};
use super::finding::{Finding, ListKind};
use super::heap_memory::HeapMemory;
use super::layout::{
    ADDRESS_LIMIT, ALIGNMENT_BYTES, HEADER_BYTES, Layout, PAGE_BYTES, cache, cache_bin_chunk_bytes, word,
};
use super::page_cache::PageCache;

/// Chunks that may hold a thread's cache.
#[derive(Debug, Default)]
pub(super) struct CacheCandidates {
    filled: Vec<Candidate>,
    empty: Vec<u64>,
    first_empty: Vec<u64>,
}

#[derive(Debug)]
struct Candidate {
    chunk_avma: u64,
    content: Box<[u8; cache::BYTES]>,
}

impl CacheCandidates {
    /// Looks at the block of the chunk at `chunk_avma`.
    pub(super) fn consider(&mut self, chunk_avma: u64, content: &[u8], is_first_of_heap: bool) {
        /// So many threads have an empty cache at most; a program with more blocks of zeros of this size keeps them listed.
        const MOST_EMPTY: usize = 1 << 16;
        let Ok(content) = <&[u8; cache::BYTES]>::try_from(content) else { return };
        match is_cache(content) {
            Some(true) => self.filled.push(Candidate { chunk_avma, content: Box::new(*content) }),
            Some(false) if is_first_of_heap => self.first_empty.push(chunk_avma),
            Some(false) if self.empty.len() < MOST_EMPTY => self.empty.push(chunk_avma),
            _ => {}
        }
    }

    /// Adds what another walk found.
    pub(super) fn merge(&mut self, mut other: Self) {
        self.filled.append(&mut other.filled);
        self.empty.append(&mut other.empty);
        self.first_empty.append(&mut other.first_empty);
    }

    /// Adds all chunks that lie in caches, and those of the caches themselves, to `free`.
    pub(super) fn collect<M: HeapMemory>(
        self,
        memory: &M,
        layout: &Layout,
        thread_pointers: &[u64],
        free: &mut Vec<u64>,
        findings: &mut Vec<Finding>,
    ) {
        let mut pages = PageCache::new(memory);
        for candidate in &self.filled {
            candidate.collect(&mut pages, layout, free, findings);
        }
        if self.empty.is_empty() && self.first_empty.is_empty() {
            return;
        }
        let block = |chunk: &u64| chunk + HEADER_BYTES;
        let known = Known {
            filled: self.filled.iter().map(|candidate| block(&candidate.chunk_avma)).collect(),
            first_empty: self.first_empty.iter().map(block).collect(),
            empty: self.empty.iter().map(block).collect(),
        };
        let threads: Vec<_> = thread_pointers.iter().map(|pointer| words_below(memory, *pointer)).collect();
        match known.slot(&threads) {
            Some(slot) => {
                let pointers = threads.iter().filter_map(|words| words.get(slot).copied());
                let are_empty =
                    pointers.filter(|block| known.first_empty.contains(block) || known.empty.contains(block));
                free.extend(are_empty.map(|block| block - HEADER_BYTES));
            }
            // Nothing tells where the threads keep theirs: what a thread's first allocation makes is one.
            None => free.extend(&self.first_empty),
        }
    }
}

impl Candidate {
    fn collect<M: HeapMemory>(
        &self,
        pages: &mut PageCache<'_, M>,
        layout: &Layout,
        free: &mut Vec<u64>,
        findings: &mut Vec<Finding>,
    ) {
        let lists = (0..cache::BINS).filter(|bin| count(&self.content, *bin) != 0).map(|bin| ChunkList {
            kind: ListKind::ThreadCache,
            head_avma: self.chunk_avma + HEADER_BYTES + (cache::ENTRIES + bin * 8) as u64,
            first_avma: entry(&self.content, bin),
            chunk_bytes: cache_bin_chunk_bytes(bin),
            most_entries: u64::from(count(&self.content, bin)),
        });
        let mut own = Vec::new();
        let mut own_findings = Vec::new();
        let mut good_lists = 0;
        for list in lists {
            match follow(pages, layout, &list, &mut own) {
                Ok(()) => good_lists += 1,
                Err(finding) => own_findings.push(finding),
            }
        }
        // Nothing in it holds: a block of the program that only looked like one.
        if good_lists == 0 || own_findings.len() > good_lists {
            return;
        }
        free.push(self.chunk_avma);
        free.append(&mut own);
        findings.append(&mut own_findings);
    }
}

fn count(content: &[u8; cache::BYTES], bin: usize) -> u16 {
    u16::from_le_bytes([content[bin * 2], content[bin * 2 + 1]])
}

fn entry(content: &[u8; cache::BYTES], bin: usize) -> u64 {
    word(content, cache::ENTRIES + bin * 8)
}

/// Whether `content` can be a cache, and if so whether it holds anything.
fn is_cache(content: &[u8; cache::BYTES]) -> Option<bool> {
    let mut is_filled = false;
    for bin in 0..cache::BINS {
        let (count, entry_avma) = (count(content, bin), entry(content, bin));
        let is_address =
            entry_avma % ALIGNMENT_BYTES == 0 && (PAGE_BYTES..ADDRESS_LIMIT).contains(&entry_avma);
        match (count, entry_avma) {
            (0, 0) => {}
            (1.., 1..) if is_address => is_filled = true,
            _ => return None,
        }
    }
    Some(is_filled)
}

/// The blocks that are, or look like, caches.
struct Known {
    filled: HashSet<u64>,
    first_empty: HashSet<u64>,
    empty: HashSet<u64>,
}

impl Known {
    /// The place in each thread's words at which libc keeps the pointer to its cache: it is the same for all threads, and in each
    /// holds the address of a cache, or nothing yet.
    fn slot(&self, threads: &[Vec<u64>]) -> Option<usize> {
        let slots = threads.iter().map(Vec::len).max().unwrap_or(0);
        let score = |slot: usize| {
            let (mut filled, mut first, mut empty, mut others) = (0_usize, 0_usize, 0_usize, 0_usize);
            for word in threads.iter().filter_map(|words| words.get(slot)) {
                match word {
                    0 => {}
                    word if self.filled.contains(word) => filled += 1,
                    word if self.first_empty.contains(word) => first += 1,
                    word if self.empty.contains(word) => empty += 1,
                    _ => others += 1,
                }
            }
            // A program's own variable may point to a block of zeros: alone, that is believed only if no thread has anything else.
            let is_slot = filled + first > 0 || (empty > 0 && others == 0);
            is_slot.then_some((filled, first, std::cmp::Reverse(others), empty))
        };
        (0..slots).filter_map(|slot| Some((score(slot)?, slot))).max().map(|(_, slot)| slot)
    }
}

/// The words just below a thread pointer, from there down, where the libraries' thread-local variables are.
fn words_below(memory: &impl HeapMemory, thread_pointer: u64) -> Vec<u64> {
    /// libc's own variables begin within a page unless the program has large ones before them.
    const PAGES_BELOW: u64 = 4;
    let mut words = Vec::new();
    let mut end_avma = thread_pointer & !7;
    for _ in 0..PAGES_BELOW {
        // Page by page as they are mapped: what lies below the lowest is nobody's.
        let start_avma = end_avma.saturating_sub(1) & !(PAGE_BYTES - 1);
        let mut bytes = vec![0; (end_avma - start_avma) as usize];
        if memory.read(start_avma, &mut bytes) < bytes.len() {
            break;
        }
        words.extend(bytes.chunks_exact(8).rev().map(|bytes| word(bytes, 0)));
        end_avma = start_avma;
    }
    words
}
