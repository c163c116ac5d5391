//! Numbers of objects by their ids.
//!
//! Ids are addresses, most of them 16 bytes or more apart in regions that are nearly full. A dump
//! has them mostly in their order. A page is a set of bits for 2 KiB of addresses, in one line of
//! the cache. It has the number of its first id if its ids are numbered in order, else a list of
//! numbers.

use rustc_hash::FxHashMap;

/// Ids of a page: one for each 8 bytes.
const PAGE_IDS: usize = 256;
const WORDS: usize = PAGE_IDS / 64;
/// Stands for no page.
const NO_PAGE: u64 = u64::MAX;
/// Stands for no index of a page.
const NO_INDEX: u32 = u32::MAX;
/// Largest number of places of the table for each page.
const PLACES_PER_PAGE: u64 = 32;

/// Set of the ids of a page.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Page {
    bits: [u64; WORDS],
    /// Number of ids before each word.
    before: [u16; WORDS],
    /// Number of the first id, or index of the list of numbers.
    first: u32,
    /// Number of ids.
    count: u16,
    /// Greatest position of an id.
    last_slot: u8,
    /// Whether the ids are not numbered in order.
    is_listed: bool,
}

impl Page {
    /// A page whose first id will have this number.
    fn beginning_at(first: u32) -> Self {
        Self { bits: [0; WORDS], before: [0; WORDS], first, count: 0, last_slot: 0, is_listed: false }
    }

    /// Adds an id of this number. Returns whether it is new.
    #[inline]
    fn insert(&mut self, slot: usize, number: u32) -> bool {
        let word = &mut self.bits[slot / 64];
        let bit = 1 << (slot % 64);
        if *word & bit != 0 {
            return false;
        }
        *word |= bit;
        let is_behind = self.count == 0 || slot > usize::from(self.last_slot);
        self.is_listed |= !is_behind || number != self.first + u32::from(self.count);
        self.count += 1;
        self.last_slot = slot.max(self.last_slot.into()) as u8;
        true
    }

    /// Adds the ids of a page of other ids, whose numbers are greater by `offset`.
    fn unite(&mut self, next: &Self, offset: u32) {
        let lowest = next.bits.iter().position(|&word| word != 0);
        let lowest = lowest.map_or(0, |word| word * 64 + next.bits[word].trailing_zeros() as usize);
        self.is_listed |= next.is_listed
            || lowest <= usize::from(self.last_slot)
            || self.first + u32::from(self.count) != next.first + offset;
        for (bits, new) in self.bits.iter_mut().zip(&next.bits) {
            *bits |= new;
        }
        self.count += next.count;
        self.last_slot = self.last_slot.max(next.last_slot);
    }

    /// Number of ids of the page that are smaller than that of a slot; `None` if the slot is empty.
    #[inline]
    fn rank(&self, slot: usize) -> Option<u32> {
        let word = self.bits[slot / 64];
        if word >> (slot % 64) & 1 == 0 {
            return None;
        }
        let inside = (word & ((1 << (slot % 64)) - 1)).count_ones();
        Some(u32::from(self.before[slot / 64]) + inside)
    }
}

/// Set of ids that gives each its number.
#[derive(Debug)]
pub(crate) struct IdMap {
    indexes: FxHashMap<u64, u32>,
    pages: Vec<Page>,
    /// Number of ids.
    count: u32,
    last: (u64, u32),
    /// Index of each page of ids that are multiples of 8, from the page `lowest` on.
    table: Vec<u32>,
    lowest: u64,
    /// Numbers of the ids of pages that are not numbered in order.
    numbers: Vec<u32>,
}

/// Page and position of an id. Ids that differ in the lowest three bits are on different pages.
fn split(id: u64) -> (u64, usize) {
    ((id >> 11) << 3 | id & 7, (id >> 3) as usize % PAGE_IDS)
}

fn joined(page: u64, slot: usize) -> u64 {
    (page >> 3) << 11 | (slot as u64) << 3 | page & 7
}

impl IdMap {
    pub(crate) fn new() -> Self {
        Self {
            indexes: FxHashMap::default(),
            pages: Vec::new(),
            count: 0,
            last: (NO_PAGE, 0),
            table: Vec::new(),
            lowest: 0,
            numbers: Vec::new(),
        }
    }

    /// Adds an id, whose number is that of the ids before it. Returns whether it is new.
    pub(crate) fn insert(&mut self, id: u64) -> bool {
        let (page, slot) = split(id);
        if self.last.0 != page {
            let next = self.pages.len() as u32;
            let index = *self.indexes.entry(page).or_insert(next);
            if index == next {
                self.pages.push(Page::beginning_at(self.count));
            }
            self.last = (page, index);
        }
        let is_new = self.pages[self.last.1 as usize].insert(slot, self.count);
        self.count += u32::from(is_new);
        is_new
    }

    /// Adds the ids of another set, unless it has one that is known. Their numbers follow the own
    /// ones. Returns whether all of its ids are new.
    pub(crate) fn unite(&mut self, other: &Self) -> bool {
        let mut known = other.indexes.iter().filter_map(|(page, &index)| {
            Some((&self.pages[*self.indexes.get(page)? as usize], &other.pages[index as usize]))
        });
        if known.any(|(own, new)| own.bits.iter().zip(&new.bits).any(|(own, new)| own & new != 0)) {
            return false;
        }
        self.pages.reserve(other.pages.len());
        for (&page, &index) in &other.indexes {
            let new = &other.pages[index as usize];
            let next = self.pages.len() as u32;
            match *self.indexes.entry(page).or_insert(next) {
                own if own == next => self.pages.push(Page { first: new.first + self.count, ..*new }),
                own => self.pages[own as usize].unite(new, self.count),
            }
        }
        self.count += other.count;
        true
    }

    /// Ends the adding: `ids` are all ids in the order of their numbers.
    pub(crate) fn finish(&mut self, ids: &[u64]) {
        let mut listed_count = 0;
        for page in &mut self.pages {
            let mut sum = 0;
            for (word, before) in page.bits.iter().zip(&mut page.before) {
                *before = sum;
                sum += word.count_ones() as u16;
            }
            if page.is_listed {
                page.first = listed_count;
                listed_count += u32::from(page.count);
            }
        }
        self.make_table();
        self.numbers = vec![0; listed_count as usize];
        if listed_count == 0 {
            return;
        }
        // Ids that follow each other are mostly on one page, and few pages are listed.
        let mut last = (NO_PAGE, false);
        for (number, &id) in (0..).zip(ids) {
            let (page, slot) = split(id);
            if page != last.0 {
                last = (page, self.index(page).is_some_and(|index| self.pages[index].is_listed));
            }
            if last.1
                && let Some(index) = self.index(page)
                && let Some(rank) = self.pages[index].rank(slot)
            {
                self.numbers[(self.pages[index].first + rank) as usize] = number;
            }
        }
    }

    /// Makes the table of pages, without those that lie far below most of them.
    fn make_table(&mut self) {
        let aligned: Vec<(u64, u32)> = self
            .indexes
            .iter()
            .filter(|&(page, _)| page & 7 == 0)
            .map(|(page, &index)| (page >> 3, index))
            .collect();
        let Some(highest) = aligned.iter().map(|&(page, _)| page).max() else { return };
        let lowest_possible = highest.saturating_sub(self.pages.len() as u64 * PLACES_PER_PAGE);
        let near = || aligned.iter().filter(|(page, _)| *page >= lowest_possible);
        let lowest = near().map(|&(page, _)| page).min().unwrap_or(highest);
        let mut table = vec![NO_INDEX; (highest - lowest) as usize + 1];
        for &(page, index) in near() {
            table[(page - lowest) as usize] = index;
        }
        (self.table, self.lowest) = (table, lowest);
    }

    /// Index of a page.
    #[inline]
    fn index(&self, page: u64) -> Option<usize> {
        let place = (page >> 3).wrapping_sub(self.lowest);
        if page & 7 == 0
            && let Some(&index) = usize::try_from(place).ok().and_then(|place| self.table.get(place))
        {
            return (index != NO_INDEX).then_some(index as usize);
        }
        self.indexes.get(&page).map(|&index| index as usize)
    }

    /// Number of an id by its page and rank.
    #[inline]
    fn number(&self, index: usize, rank: u32) -> u32 {
        let page = &self.pages[index];
        let number = page.first.wrapping_add(rank);
        if page.is_listed { self.numbers.get(number as usize).copied().unwrap_or(0) } else { number }
    }

    /// Returns the number of an id.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<u32> {
        if id == 0 {
            return None;
        }
        let (page, slot) = split(id);
        let index = self.index(page)?;
        Some(self.number(index, self.pages[index].rank(slot)?))
    }

    /// Calls `visit` with all ids that are multiples of 8 and their numbers, by ascending id.
    pub(crate) fn visit(&self, mut visit: impl FnMut(u64, u32)) {
        let mut sorted: Vec<(u64, u32)> = self.indexes.iter().map(|(&page, &index)| (page, index)).collect();
        sorted.sort_unstable();
        for (page, index) in sorted.into_iter().filter(|(page, _)| page & 7 == 0) {
            let mut rank = 0;
            for (at, &word) in self.pages[index as usize].bits.iter().enumerate() {
                let mut rest = word;
                while rest != 0 {
                    let slot = at * 64 + rest.trailing_zeros() as usize;
                    rest &= rest - 1;
                    visit(joined(page, slot), self.number(index as usize, rank));
                    rank += 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ids: &[u64], absent: &[u64]) {
        let mut map = IdMap::new();
        assert!(ids.iter().all(|&id| map.insert(id)));
        assert!(!map.insert(ids[0]) && !map.insert(ids[ids.len() - 1]));
        map.finish(ids);
        for (number, &id) in (0..).zip(ids) {
            assert_eq!(map.get(id), (id != 0).then_some(number), "{id:#x}");
        }
        assert!(absent.iter().all(|&id| map.get(id).is_none()));
        let (mut last, mut count) = (0, 0);
        map.visit(|id, number| {
            assert!(id >= last && ids[number as usize] == id);
            (last, count) = (id, count + 1);
        });
        assert_eq!(count, ids.iter().filter(|&&id| id % 8 == 0).count());
    }

    #[test]
    fn every_id_has_its_number_and_no_other_has_one() {
        let in_order: Vec<u64> = (0..5000).map(|at| 0x6_8740_0000 + at * 24).collect();
        let absent = [0, 8, 0x6_8740_0008, 0x6_8740_0000 - 24, 0x6_8740_0000 + 5000 * 24, u64::MAX];
        check(&in_order, &absent);
        // Class objects come first, wherever they lie.
        let mut classes_first: Vec<u64> = in_order.iter().copied().filter(|id| id % 720 == 0).collect();
        classes_first.extend(in_order.iter().copied().filter(|id| id % 720 != 0));
        check(&classes_first, &absent);
        let mut backwards = in_order;
        backwards.reverse();
        check(&backwards, &absent);
        // The first id is the second one of its page.
        check(&[0x2008, 0x2000, 0x2010], &[0, 0x2018]);
        check(&[0x2008, 0x2010, 0x2000], &[]);
        // Ids that lie too far apart for a table, and ids that are no addresses.
        backwards.extend([1, 2, 3, 4, 5, 0xffff_ffff_ffff_fff8, 0xffff_ffff_ffff_fffe, 0x7f00_0000_1234]);
        check(&backwards, &absent);
    }
}
