//! Thread caches: free chunks that look used, in structures that are themselves blocks of the heap.
//!
//! A thread's pointer to its cache lies in thread-local storage at an offset that only libc knows.
//! The structure is recognised instead: a chunk of its size in which each bin has a count exactly
//! if it has an entry. The entries are chunks of that bin's size.
//!
//! An empty cache looks like any block of zeros. It counts if it is the first chunk of its heap,
//! where a thread's first allocation puts it. It also counts if a word at the right distance from
//! a thread's control block points to it. The distance is right if the words there point to other
//! threads' caches.

use std::collections::HashSet;
use std::thread;

use heapr_known::machine::{HERE, ThreadLocalPlace};
use heapr_proc::page_bytes;

use super::chunk_lists::{ChunkList, follow};
use super::finding::{Finding, ListKind};
use super::heap_memory::HeapMemory;
use super::layout::{ADDRESS_LIMIT, ALIGNMENT_BYTES, CacheLayout, HEADER_BYTES, Layout, word};
use super::page_cache::PageCache;

/// Chunks that may hold a thread cache.
#[derive(Debug)]
pub(super) struct CacheCandidates {
    pub(super) layout: CacheLayout,
    filled: Vec<Candidate>,
    empty: Vec<u64>,
    first_empty: Vec<u64>,
}

#[derive(Debug)]
struct Candidate {
    chunk_avma: u64,
    content: Box<[u8]>,
}

impl CacheCandidates {
    pub(super) fn new(layout: CacheLayout) -> Self {
        Self { layout, filled: Vec::new(), empty: Vec::new(), first_empty: Vec::new() }
    }

    /// Creates an empty list for the same glibc version.
    pub(super) fn of_same_kind(&self) -> Self {
        Self::new(self.layout)
    }

    /// Examines the block of the chunk at `chunk_avma`.
    pub(super) fn consider(&mut self, chunk_avma: u64, content: &[u8], is_first_of_heap: bool) {
        /// Largest number of empty caches; further blocks of zeros of this size stay listed as
        /// live.
        const MOST_EMPTY: usize = 1 << 16;
        match is_cache(self.layout, content) {
            Some(true) => self.filled.push(Candidate { chunk_avma, content: content.into() }),
            Some(false) if is_first_of_heap => self.first_empty.push(chunk_avma),
            Some(false) if self.empty.len() < MOST_EMPTY => self.empty.push(chunk_avma),
            _ => {}
        }
    }

    /// Adds the candidates of another walk.
    pub(super) fn merge(&mut self, mut other: Self) {
        self.filled.append(&mut other.filled);
        self.empty.append(&mut other.empty);
        self.first_empty.append(&mut other.first_empty);
    }

    /// Words of each thread that may hold the pointer to its cache; empty if no candidate needs
    /// them.
    pub(super) fn thread_words(&self, memory: &impl HeapMemory, thread_pointers: &[u64]) -> Vec<Vec<u64>> {
        if self.empty.is_empty() && self.first_empty.is_empty() {
            return Vec::new();
        }
        thread_pointers.iter().map(|pointer| words_beside(memory, *pointer)).collect()
    }

    /// Adds all chunks in caches, and the caches' own chunks, to `free`. `threads`: words from
    /// [`Self::thread_words`].
    pub(super) fn collect<M: HeapMemory + Sync>(
        self,
        memory: &M,
        layout: &Layout,
        threads: &[Vec<u64>],
        free: &mut Vec<u64>,
        findings: &mut Vec<Finding>,
    ) {
        let follow = |candidates: &[Candidate]| {
            let mut pages = PageCache::new(memory);
            let (mut free, mut findings) = (Vec::new(), Vec::new());
            for candidate in candidates {
                candidate.collect(&mut pages, layout, &mut free, &mut findings);
            }
            (free, findings)
        };
        /// Least number of caches per thread: fewer are followed in less time than a thread needs
        /// to start.
        const LEAST_PART: usize = 8;
        let part = self.filled.len().div_ceil(worker_count(self.filled.len() / LEAST_PART).max(1)).max(1);
        let (own, others) = self.filled.split_at(part.min(self.filled.len()));
        let parts = thread::scope(|scope| {
            let start =
                |part| thread::Builder::new().spawn_scoped(scope, move || follow(part)).map_err(|_| part);
            let others: Vec<_> = others.chunks(part).map(start).collect();
            let mut parts = vec![follow(own)];
            for other in others {
                match other.map(thread::ScopedJoinHandle::join) {
                    Ok(Ok(part)) => parts.push(part),
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // The thread could not be created.
                    Err(part) => parts.push(follow(part)),
                }
            }
            parts
        });
        for (mut part_free, mut part_findings) in parts {
            free.append(&mut part_free);
            findings.append(&mut part_findings);
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
        match known.slot(threads) {
            Some(slot) => {
                let pointers = threads.iter().filter_map(|words| words.get(slot).copied());
                let are_empty =
                    pointers.filter(|block| known.first_empty.contains(block) || known.empty.contains(block));
                free.extend(are_empty.map(|block| block - HEADER_BYTES));
            }
            // The offset of the pointer is unknown: a block that a thread's first allocation made
            // counts as a cache.
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
        let cache = layout.cache;
        let capacity = capacity(cache, &self.content);
        let lists = (0..cache.bin_count).filter(|bin| entry(cache, &self.content, *bin) != 0).map(|bin| {
            let number = number(&self.content, bin);
            let count = if cache.counts_free_slots { capacity - number } else { number };
            ChunkList {
                kind: ListKind::ThreadCache,
                head_avma: self.chunk_avma + HEADER_BYTES + (cache.entries_offset() + bin * 8) as u64,
                first_avma: entry(cache, &self.content, bin),
                chunk_bytes: cache.chunk_bytes(bin),
                most_entries: u64::from(count),
            }
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
        // No list is consistent: a block of the program that only looked like a cache.
        if good_lists == 0 || own_findings.len() > good_lists {
            return;
        }
        free.push(self.chunk_avma);
        free.append(&mut own);
        findings.append(&mut own_findings);
    }
}

/// Number stored for a bin: chunks that it holds, or may still take.
fn number(content: &[u8], bin: usize) -> u16 {
    u16::from_le_bytes([content[bin * 2], content[bin * 2 + 1]])
}

fn entry(cache: CacheLayout, content: &[u8], bin: usize) -> u64 {
    word(content, cache.entries_offset() + bin * 8)
}

/// Number that an empty bin may take, in versions that count free slots: equal for all bins, at
/// least one of which is empty.
fn capacity(cache: CacheLayout, content: &[u8]) -> u16 {
    (0..cache.bin_count).map(|bin| number(content, bin)).max().unwrap_or(0)
}

/// Whether `content` holds any chunks as a cache; `None` if it cannot be a cache.
fn is_cache(cache: CacheLayout, content: &[u8]) -> Option<bool> {
    if content.len() != cache.bytes() {
        return None;
    }
    let capacity = if cache.counts_free_slots { capacity(cache, content) } else { 0 };
    if cache.counts_free_slots && capacity == 0 {
        return None;
    }
    let mut is_filled = false;
    for bin in 0..cache.bin_count {
        let (number, entry_avma) = (number(content, bin), entry(cache, content, bin));
        let is_address =
            entry_avma % ALIGNMENT_BYTES == 0 && (page_bytes()..ADDRESS_LIMIT).contains(&entry_avma);
        match (number != capacity, entry_avma) {
            (false, 0) => {}
            (true, 1..) if is_address => is_filled = true,
            _ => return None,
        }
    }
    Some(is_filled)
}

/// Addresses of blocks that are, or look like, caches.
struct Known {
    filled: HashSet<u64>,
    first_empty: HashSet<u64>,
    empty: HashSet<u64>,
}

impl Known {
    /// Index of the word in each thread's words in which libc stores the pointer to its cache. It
    /// is equal for all threads, and holds the address of a cache or 0.
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
            // A variable of the program may point to a block of zeros. It is believed alone only if
            // no thread has another value there.
            let is_slot = filled + first > 0 || (empty > 0 && others == 0);
            is_slot.then_some((filled, first, std::cmp::Reverse(others), empty))
        };
        (0..slots).filter_map(|slot| Some((score(slot)?, slot))).max().map(|(_, slot)| slot)
    }
}

/// Words beside a thread pointer, away from it, where the libraries' thread-local variables lie.
fn words_beside(memory: &impl HeapMemory, thread_pointer: u64) -> Vec<u64> {
    /// Number of pages read. libc's variables lie within one page unless the program has large
    /// ones before them.
    const PAGES: u64 = 4;
    let mut words = Vec::new();
    let mut near_avma = thread_pointer & !7;
    for _ in 0..PAGES {
        // Page by page: memory outside of the mapping does not exist.
        let page_avma = |avma: u64| avma & !(page_bytes() - 1);
        let far_avma = match HERE.thread_locals {
            ThreadLocalPlace::BeforeThreadPointer => page_avma(near_avma.saturating_sub(1)),
            ThreadLocalPlace::BehindThreadPointer { .. } => page_avma(near_avma).saturating_add(page_bytes()),
        };
        let mut bytes = vec![0; near_avma.abs_diff(far_avma) as usize];
        if memory.read(near_avma.min(far_avma), &mut bytes) < bytes.len() {
            break;
        }
        let page = bytes.chunks_exact(8).map(|bytes| word(bytes, 0));
        if far_avma < near_avma {
            words.extend(page.rev());
        } else {
            words.extend(page);
        }
        near_avma = far_avma;
    }
    words
}

/// Number of threads that share the work while a target stands still.
pub(super) fn worker_count(task_count: usize) -> usize {
    /// Largest number of threads: more gain little, as they wait for the same memory.
    const MOST: usize = 4;
    thread::available_parallelism().map_or(1, usize::from).min(MOST).min(task_count)
}
