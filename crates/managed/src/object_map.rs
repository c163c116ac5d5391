//! Nodes by address: a bit for each address of a pool of small objects, and a hash table for all
//! others.
//!
//! ```text
//! region of 1 MiB -> 1,024 words of 64 bits, one bit for each 16 bytes:  0 1 0 0 1 1 …
//!                    node of the first bit of each word:                 820
//! ```
//! Objects of pools are numbered by their address. So a node's number is that of its word's first
//! bit, plus the count of the bits before its own.

use rustc_hash::FxHashMap;

/// Distance between two addresses of objects, at least.
const UNIT_BYTES: u64 = 16;
const REGION_BYTES: u64 = 1 << 20;
/// Words of a region; each has a bit for 64 addresses.
const REGION_WORDS: u64 = REGION_BYTES / UNIT_BYTES / 64;
/// Smallest size of a pool, and number of these in a region.
const PAGE_BYTES: u64 = 4096;
const REGION_PAGES: usize = (REGION_BYTES / PAGE_BYTES) as usize;

/// Bits and numbers of a word of 64 addresses.
#[derive(Debug, Clone, Copy, Default)]
struct Word {
    bits: u64,
    /// Node of the lowest bit.
    first: u32,
}

/// Part of the memory that has pools.
#[derive(Debug)]
struct Region {
    /// First word of the region.
    first_word: usize,
    /// Bit of each page that belongs to a pool.
    pages: [u64; REGION_PAGES / 64],
}

impl Region {
    fn has(&self, address_avma: u64) -> bool {
        let page = (address_avma % REGION_BYTES / PAGE_BYTES) as usize;
        self.pages[page / 64] >> (page % 64) & 1 == 1
    }
}

/// Nodes by address.
#[derive(Debug)]
pub(crate) struct ObjectMap {
    pool_bytes: u64,
    /// Index of each region, by its number.
    numbers: FxHashMap<u64, u32>,
    regions: Vec<Region>,
    words: Vec<Word>,
    others: FxHashMap<u64, u32>,
    /// Whether `others` has an address of a pool, as it was added out of order.
    has_late: bool,
}

impl ObjectMap {
    /// Creates an empty map. `pool_bytes`: size of pools, a power of two from 4,096 on.
    pub(crate) fn new(pool_bytes: u64) -> Self {
        Self {
            pool_bytes,
            numbers: FxHashMap::default(),
            regions: Vec::new(),
            words: Vec::new(),
            others: FxHashMap::default(),
            has_late: false,
        }
    }

    /// Adds a pool. Addresses in it that are not added are known to have no object.
    pub(crate) fn add_pool(&mut self, pool_avma: u64) {
        for page_avma in (pool_avma..pool_avma.saturating_add(self.pool_bytes)).step_by(PAGE_BYTES as usize) {
            let number = page_avma / REGION_BYTES;
            let index = match self.numbers.get(&number) {
                Some(&index) => index,
                None => {
                    let index = self.regions.len() as u32;
                    self.numbers.insert(number, index);
                    let first_word = self.words.len();
                    self.words.resize(first_word + REGION_WORDS as usize, Word::default());
                    self.regions.push(Region { first_word, pages: [0; REGION_PAGES / 64] });
                    index
                }
            };
            let page = (page_avma % REGION_BYTES / PAGE_BYTES) as usize;
            self.regions[index as usize].pages[page / 64] |= 1 << (page % 64);
        }
    }

    fn region_of(&self, address_avma: u64) -> Option<&Region> {
        let index = *self.numbers.get(&(address_avma / REGION_BYTES))?;
        self.regions.get(index as usize).filter(|region| region.has(address_avma))
    }

    /// Word and bit of an address in a pool.
    fn bit_of(region: &Region, address_avma: u64) -> (usize, u32) {
        let unit = address_avma % REGION_BYTES / UNIT_BYTES;
        (region.first_word + (unit / 64) as usize, (unit % 64) as u32)
    }

    /// Whether an address lies in a pool.
    pub(crate) fn is_in_pool(&self, address_avma: u64) -> bool {
        self.region_of(address_avma).is_some()
    }

    /// Returns the node of an address.
    pub(crate) fn get(&self, address_avma: u64) -> Option<u32> {
        let Some(region) = self.region_of(address_avma) else {
            return self.others.get(&address_avma).copied();
        };
        let (word, bit) = Self::bit_of(region, address_avma);
        let Word { bits, first } = self.words[word];
        if address_avma.is_multiple_of(UNIT_BYTES) && bits >> bit & 1 == 1 {
            return Some(first + (bits & ((1 << bit) - 1)).count_ones());
        }
        if self.has_late { self.others.get(&address_avma).copied() } else { None }
    }

    /// Adds a node, unless the address has one.
    pub(crate) fn insert(&mut self, address_avma: u64, node: u32) {
        let Some(region) = self.region_of(address_avma) else {
            self.others.insert(address_avma, node);
            return;
        };
        let (index, bit) = Self::bit_of(region, address_avma);
        let word = &mut self.words[index];
        if word.bits == 0 {
            word.first = node;
        }
        let is_next = word.bits >> bit == 0
            && u64::from(node) == u64::from(word.first) + u64::from(word.bits.count_ones());
        if address_avma.is_multiple_of(UNIT_BYTES) && is_next {
            word.bits |= 1 << bit;
        } else {
            self.has_late = true;
            self.others.insert(address_avma, node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_pools_and_elsewhere_are_found_by_their_address_alone() {
        let mut map = ObjectMap::new(4096);
        map.add_pool(0x10_0000);
        map.insert(0x10_0040, 7);
        map.insert(0x20_0008, 8);
        assert_eq!(
            [0x10_0040, 0x20_0008, 0x10_0048, 0x10_0050].map(|at| map.get(at)),
            [Some(7), Some(8), None, None]
        );
        assert!(map.is_in_pool(0x10_0fff) && !map.is_in_pool(0x10_1000));
    }

    #[test]
    fn objects_of_a_pool_have_their_numbers_in_whatever_order_they_come() {
        let mut map = ObjectMap::new(16 << 10);
        // A pool over the border of two regions.
        let first_avma = 0x7f00_0010_0000 - (8 << 10);
        map.add_pool(first_avma);
        assert!(map.is_in_pool(first_avma) && map.is_in_pool(first_avma + (16 << 10) - 1));
        assert!(!map.is_in_pool(first_avma - 1) && !map.is_in_pool(first_avma + (16 << 10)));
        let in_order: Vec<u64> = (0..200).map(|number| first_avma + 48 + number * 80).collect();
        for (node, &avma) in in_order.iter().enumerate() {
            map.insert(avma, node as u32);
        }
        // Later ones between these, and at an address of no block.
        let late = [first_avma + 64, first_avma + 48 + 199 * 80 + 16, first_avma + 72];
        for (number, avma) in late.into_iter().enumerate() {
            map.insert(avma, 300 + number as u32);
        }
        for (node, &avma) in in_order.iter().enumerate() {
            assert_eq!(map.get(avma), Some(node as u32));
        }
        assert_eq!(late.map(|avma| map.get(avma)), [Some(300), Some(301), Some(302)]);
        assert_eq!(map.get(first_avma + 80), None);
    }
}
