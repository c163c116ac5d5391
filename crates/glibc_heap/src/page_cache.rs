//! Cache for scattered reads: lists of free chunks run all over the heap and touch the same pages
//! again.

use std::collections::HashMap;

use super::heap_memory::HeapMemory;

/// Cached pieces of the target, within a bound of memory.
pub(super) struct PageCache<'m, M> {
    memory: &'m M,
    granules: HashMap<u64, Box<[u8]>>,
    granule_bytes: u64,
    /// Pages of granules that begin before their mapping does.
    edge_pages: HashMap<u64, Box<[u8]>>,
}

/// Size of the first reads, one page: most programs' lists are short.
const FIRST_GRANULE_BYTES: u64 = 4096;
/// Number of misses after which larger pieces are read: the lists then run through the whole heap,
/// and fewer reads cost less.
const MISSES_BEFORE_LARGER: usize = 64;
const LARGER_GRANULE_BYTES: u64 = 64 << 10;
/// Largest number of cached granules; beyond it the cache is emptied.
const MOST_LARGER_GRANULES: usize = (256 << 20) / LARGER_GRANULE_BYTES as usize;

impl<'m, M: HeapMemory> PageCache<'m, M> {
    /// Creates an empty cache over `memory`.
    pub(super) fn new(memory: &'m M) -> Self {
        Self {
            memory,
            granules: HashMap::new(),
            granule_bytes: FIRST_GRANULE_BYTES,
            edge_pages: HashMap::new(),
        }
    }

    /// The word at `address_avma`, which is a multiple of 8.
    pub(super) fn word(&mut self, address_avma: u64) -> Option<u64> {
        if let Some(word) = self.memory.word_at_hand(address_avma) {
            return Some(word);
        }
        let start_avma = address_avma & !(self.granule_bytes - 1);
        if !self.granules.contains_key(&start_avma) {
            return self.miss(address_avma);
        }
        let bytes = self.granules.get(&start_avma)?;
        let offset = (address_avma - start_avma) as usize;
        match bytes.get(offset..offset + 8) {
            Some(word) => Some(super::layout::word(word, 0)),
            None => self.alone(address_avma),
        }
    }

    fn miss(&mut self, address_avma: u64) -> Option<u64> {
        if self.granule_bytes == FIRST_GRANULE_BYTES && self.granules.len() >= MISSES_BEFORE_LARGER {
            self.granules.clear();
            self.granule_bytes = LARGER_GRANULE_BYTES;
        } else if self.granules.len() >= MOST_LARGER_GRANULES.max(MISSES_BEFORE_LARGER) {
            self.granules.clear();
        }
        let start_avma = address_avma & !(self.granule_bytes - 1);
        let mut bytes = vec![0; self.granule_bytes as usize];
        let count = self.memory.read(start_avma, &mut bytes);
        bytes.truncate(count);
        let offset = (address_avma - start_avma) as usize;
        let found = bytes.get(offset..offset + 8).map(|word| super::layout::word(word, 0));
        self.granules.insert(start_avma, bytes.into_boxed_slice());
        // The granule may begin before the mapping does.
        found.or_else(|| self.alone(address_avma))
    }

    fn alone(&mut self, address_avma: u64) -> Option<u64> {
        let start_avma = address_avma & !(FIRST_GRANULE_BYTES - 1);
        if self.edge_pages.len() > MISSES_BEFORE_LARGER * LARGER_GRANULE_BYTES as usize / 4096 {
            self.edge_pages.clear();
        }
        let memory = self.memory;
        let page = self.edge_pages.entry(start_avma).or_insert_with(|| {
            let mut bytes = vec![0; FIRST_GRANULE_BYTES as usize];
            let count = memory.read(start_avma, &mut bytes);
            bytes.truncate(count);
            bytes.into_boxed_slice()
        });
        let offset = (address_avma - start_avma) as usize;
        page.get(offset..offset + 8).map(|word| super::layout::word(word, 0))
    }
}
