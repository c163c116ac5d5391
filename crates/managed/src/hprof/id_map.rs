//! Numbers of objects by their ids.
//!
//! Ids are addresses, most of them 8 bytes or more apart in regions that are nearly full. A set of
//! bits for each 2 KiB of addresses takes 3 bytes an object, and is searched without a comparison.

use rustc_hash::FxHashMap;

/// Ids of a page: one for each 4 bytes.
const PAGE_IDS: usize = 512;
const WORDS: usize = PAGE_IDS / 64;
/// Stands for no page.
const NO_PAGE: u64 = u64::MAX;

/// Set of ids that gives each its rank.
#[derive(Debug)]
pub(super) struct IdMap {
    pages: FxHashMap<u64, u32>,
    bits: Vec<[u64; WORDS]>,
    /// Number of ids of the pages before; filled at the end.
    ranks: Vec<u32>,
    last: (u64, u32),
    /// Number of each id in order of the ranks; filled at the end.
    numbers: Vec<u32>,
}

/// Page and position of an id. Ids that differ in the lowest two bits are on different pages.
fn split(id: u64) -> (u64, usize) {
    ((id >> 11) << 2 | id & 3, (id >> 2) as usize % PAGE_IDS)
}

fn joined(page: u64, slot: usize) -> u64 {
    (page >> 2) << 11 | (slot as u64) << 2 | page & 3
}

impl IdMap {
    pub(super) fn new() -> Self {
        Self {
            pages: FxHashMap::default(),
            bits: Vec::new(),
            ranks: Vec::new(),
            last: (NO_PAGE, 0),
            numbers: Vec::new(),
        }
    }

    /// Adds an id. Returns whether it is new.
    pub(super) fn insert(&mut self, id: u64) -> bool {
        let (page, slot) = split(id);
        if self.last.0 != page {
            let next = self.bits.len() as u32;
            let index = *self.pages.entry(page).or_insert(next);
            if index == next {
                self.bits.push([0; WORDS]);
            }
            self.last = (page, index);
        }
        let word = &mut self.bits[self.last.1 as usize][slot / 64];
        let bit = 1 << (slot % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Ends the adding: `ids` are all ids in the order of their numbers.
    pub(super) fn finish(&mut self, ids: &[u64]) {
        let mut sorted: Vec<(u64, u32)> = self.pages.iter().map(|(&page, &index)| (page, index)).collect();
        sorted.sort_unstable();
        self.ranks = vec![0; self.bits.len()];
        let mut sum = 0;
        for (_, index) in sorted {
            self.ranks[index as usize] = sum;
            sum += self.bits[index as usize].iter().map(|word| word.count_ones()).sum::<u32>();
        }
        self.numbers = vec![0; ids.len()];
        for (number, &id) in (0..).zip(ids) {
            if let Some(rank) = self.rank(id) {
                self.numbers[rank] = number;
            }
        }
    }

    fn rank(&self, id: u64) -> Option<usize> {
        let (page, slot) = split(id);
        let index = *self.pages.get(&page)? as usize;
        let bits = &self.bits[index];
        let word = bits[slot / 64];
        if word >> (slot % 64) & 1 == 0 {
            return None;
        }
        let before: u32 = bits[..slot / 64].iter().map(|word| word.count_ones()).sum();
        let inside = (word & ((1 << (slot % 64)) - 1)).count_ones();
        Some((self.ranks[index] + before + inside) as usize)
    }

    /// Returns the number of an id.
    #[inline]
    pub(super) fn get(&self, id: u64) -> Option<u32> {
        if id == 0 {
            return None;
        }
        self.numbers.get(self.rank(id)?).copied()
    }

    /// Calls `visit` with all ids that are multiples of 4 and their numbers, by ascending id.
    pub(super) fn visit(&self, mut visit: impl FnMut(u64, u32)) {
        let mut sorted: Vec<(u64, u32)> = self.pages.iter().map(|(&page, &index)| (page, index)).collect();
        sorted.sort_unstable();
        for (page, index) in sorted.into_iter().filter(|(page, _)| page & 3 == 0) {
            let mut rank = self.ranks[index as usize] as usize;
            for (at, &word) in self.bits[index as usize].iter().enumerate() {
                let mut rest = word;
                while rest != 0 {
                    let slot = at * 64 + rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    visit(joined(page, slot), self.numbers.get(rank).copied().unwrap_or(0));
                    rank += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_has_its_number_and_no_other_has_one() {
        let mut ids: Vec<u64> = (0..5000).map(|at| 0x6_8740_0000 + at * 24).collect();
        ids.extend([1, 2, 3, 4, 5, 0xffff_ffff_ffff_fff8, u64::MAX, 0x7f00_0000_1234]);
        ids.reverse();
        let mut map = IdMap::new();
        assert!(ids.iter().all(|&id| map.insert(id)));
        assert!(!map.insert(5) && !map.insert(u64::MAX));
        map.finish(&ids);
        for (number, &id) in (0..).zip(&ids) {
            assert_eq!(map.get(id), Some(number), "{id:#x}");
        }
        assert_eq!(map.get(0x6_8740_0008), None);
        assert_eq!(map.get(0), None);
        let (mut last, mut count) = (0, 0);
        map.visit(|id, number| {
            assert!(id >= last && ids[number as usize] == id);
            (last, count) = (id, count + 1);
        });
        assert_eq!(count, ids.iter().filter(|&&id| id % 4 == 0).count());
    }
}
