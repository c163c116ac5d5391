//! Live blocks by address: finds the block that a word leads into.
//!
//! ```text
//! word bits   63..47 0   46..24 unit         23..12 page               11..0
//!                        top[unit] --> rows of 4096 first blocks: the first that ends behind the page's start
//! ```
//! Both tables use memory only where blocks exist.

use heapr_known::machine::{HERE, Machine};

/// A live block, as the scan needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownBlock {
    /// Address in the running process.
    pub address_avma: u64,
    /// Requested size; the usable size if the requested one is unknown.
    pub size_bytes: u64,
    /// Usable size; the requested one if the usable one is unknown.
    pub usable_bytes: u64,
}

/// Map of live blocks; its tables are drawn in the module's documentation.
#[derive(Debug)]
pub struct BlockMap {
    /// Exclusive upper bound of the addresses of the process: a power of two.
    limit_avma: u64,
    starts: Vec<u64>,
    sizes: Vec<u64>,
    /// Bytes of each block between its requested and its usable size, at most `u16::MAX`. A cut
    /// loses only memory that was not requested.
    slack: Vec<u16>,
    /// Number of each unit's rows plus one; 0: no blocks.
    units: Vec<u32>,
    rows: Vec<u32>,
}

const UNIT_BITS: u32 = 24;
const PAGE_BITS: u32 = 12;
const PAGES_PER_UNIT: usize = 1 << (UNIT_BITS - PAGE_BITS);

/// The block that a word leads into, and the offset in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) block: u32,
    pub(crate) offset_bytes: u64,
}

impl BlockMap {
    /// Builds the map of a process of this machine. Blocks are sorted; of two at one address one is
    /// dropped.
    pub fn new(blocks: Vec<KnownBlock>) -> Self {
        Self::of_machine(blocks, &HERE)
    }

    /// Builds the map like [`Self::new`], for a process of another kind of machine.
    pub fn of_machine(mut blocks: Vec<KnownBlock>, machine: &Machine) -> Self {
        let limit_avma = machine.address_limit;
        blocks.retain(|block| block.address_avma < limit_avma);
        blocks.sort_unstable_by_key(|block| block.address_avma);
        blocks.dedup_by_key(|block| block.address_avma);
        blocks.truncate(u32::MAX as usize - 1);
        let mut map = Self {
            limit_avma,
            starts: Vec::with_capacity(blocks.len()),
            sizes: Vec::with_capacity(blocks.len()),
            slack: Vec::with_capacity(blocks.len()),
            units: vec![0; (limit_avma >> UNIT_BITS) as usize],
            rows: Vec::new(),
        };
        let nexts = blocks.iter().skip(1).map(|block| block.address_avma).chain([limit_avma]);
        let nexts: Vec<u64> = nexts.collect();
        for (block, next_avma) in blocks.iter().zip(nexts) {
            // A block whose free was missed may overlap the next one: each is cut where the next
            // begins.
            let room = next_avma - block.address_avma;
            let size_bytes = block.size_bytes.min(room);
            map.starts.push(block.address_avma);
            map.sizes.push(size_bytes);
            let slack = block.usable_bytes.min(room).saturating_sub(size_bytes);
            map.slack.push(u16::try_from(slack).unwrap_or(u16::MAX));
        }
        map.index();
        map
    }

    /// Exclusive upper bound of the addresses of the process.
    #[inline(always)]
    pub(crate) fn limit_avma(&self) -> u64 {
        self.limit_avma
    }

    fn index(&mut self) {
        for block in 0..self.starts.len() {
            let start_avma = self.starts[block];
            // A pointer just behind the block's end counts as a reference to it.
            let last_avma = start_avma.saturating_add(self.sizes[block]).min(self.limit_avma - 1);
            for unit in start_avma >> UNIT_BITS..=last_avma >> UNIT_BITS {
                let number = &mut self.units[unit as usize];
                if *number == 0 {
                    self.rows.extend(std::iter::repeat_n(u32::MAX, PAGES_PER_UNIT));
                    *number = (self.rows.len() / PAGES_PER_UNIT) as u32;
                }
                let row = (*number as usize - 1) * PAGES_PER_UNIT;
                let first_page = (start_avma >> PAGE_BITS).max(unit << (UNIT_BITS - PAGE_BITS));
                let last_page = (last_avma >> PAGE_BITS).min(((unit + 1) << (UNIT_BITS - PAGE_BITS)) - 1);
                for page in first_page..=last_page {
                    let first = &mut self.rows[row + page as usize % PAGES_PER_UNIT];
                    *first = (*first).min(block as u32);
                }
            }
        }
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// True if the map holds no block.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Address of a block's first byte.
    pub(crate) fn start_avma(&self, block: usize) -> u64 {
        self.starts[block]
    }

    /// Requested size of a block.
    pub(crate) fn size_bytes(&self, block: usize) -> u64 {
        self.sizes[block]
    }

    /// Exclusive end of a block's usable memory.
    pub(crate) fn end_avma(&self, block: usize) -> u64 {
        self.starts[block] + self.sizes[block] + u64::from(self.slack[block])
    }

    /// Address of a block's first byte.
    pub fn address_avma(&self, block: u32) -> u64 {
        self.starts[block as usize]
    }

    /// Requested size of a block.
    pub fn asked_bytes(&self, block: u32) -> u64 {
        self.sizes[block as usize]
    }

    /// The block that begins at an address.
    pub fn block_at(&self, address_avma: u64) -> Option<u32> {
        self.starts.binary_search(&address_avma).ok().map(|block| block as u32)
    }

    /// Start of the first block that begins behind an address; `u64::MAX` without one.
    pub(crate) fn next_start(&self, at_avma: u64) -> u64 {
        let behind = self.starts.partition_point(|&start_avma| start_avma <= at_avma);
        self.starts.get(behind).copied().unwrap_or(u64::MAX)
    }

    /// Whether a block begins in a range.
    pub(crate) fn has_any(&self, start_avma: u64, end_avma: u64) -> bool {
        let first = self.starts.partition_point(|&block_avma| block_avma < start_avma);
        self.starts.get(first).is_some_and(|&block_avma| block_avma < end_avma)
    }

    /// Whether the unit of a word holds any block; a cheap filter before [`find`](Self::find).
    #[inline(always)]
    pub(crate) fn may_hit(&self, word: u64) -> bool {
        word < self.limit_avma && self.units[(word >> UNIT_BITS) as usize] != 0
    }

    /// Finds the block that a word leads into, or just behind whose end the word leads.
    #[inline(always)]
    pub(crate) fn find(&self, word: u64) -> Option<Hit> {
        if !self.may_hit(word) { None } else { self.find_in_unit(word) }
    }

    #[inline(never)]
    fn find_in_unit(&self, word: u64) -> Option<Hit> {
        let row = (self.units[(word >> UNIT_BITS) as usize] as usize - 1) * PAGES_PER_UNIT;
        let first = self.rows[row + (word >> PAGE_BITS) as usize % PAGES_PER_UNIT];
        if first == u32::MAX {
            return None;
        }
        // The block is the last one that begins at or before the word. At most 512 begin in one
        // page.
        let rest = &self.starts[first as usize..];
        let near = &rest[..rest.len().min(514)];
        let behind = near.partition_point(|&start_avma| start_avma <= word);
        let block = first as usize + behind.checked_sub(1)?;
        let offset_bytes = word - self.starts[block];
        (offset_bytes <= self.sizes[block]).then_some(Hit { block: block as u32, offset_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(address_avma: u64, size_bytes: u64) -> KnownBlock {
        KnownBlock { address_avma, size_bytes, usable_bytes: size_bytes + 8 }
    }

    #[test]
    fn blocks_of_another_processor_lie_above_the_addresses_of_this_one() {
        const AARCH64: u16 = 183;
        let machine = heapr_known::machine::of_elf(AARCH64).unwrap();
        let start_avma = machine.address_limit - 0x1000;
        let map = BlockMap::of_machine(vec![block(0x10_0000, 8), block(start_avma, 24)], machine);
        assert_eq!(map.find(start_avma + 8), Some(Hit { block: 1, offset_bytes: 8 }));
        assert_eq!(map.find(0x10_0000), Some(Hit { block: 0, offset_bytes: 0 }));
    }

    #[test]
    fn a_word_finds_its_block_at_all_distances() {
        let blocks = [(0x10_0000, 24), (0x10_0020, 0), (0x10_0040, 100_000), (0xffff_f000, 1 << 26)];
        let map = BlockMap::new(blocks.into_iter().rev().map(|(at, size)| block(at, size)).collect());
        let find = |word| map.find(word).map(|hit| (hit.block, hit.offset_bytes));
        assert_eq!(find(0x10_0000 - 1), None);
        assert_eq!((find(0x10_0000), find(0x10_0018), find(0x10_0019)), (Some((0, 0)), Some((0, 24)), None));
        assert_eq!((find(0x10_0020), find(0x10_0021)), (Some((1, 0)), None));
        assert_eq!(find(0x10_0040 + 99_999), Some((2, 99_999)));
        assert_eq!(find(0x10_0040 + 100_001), None);
        for offset in [0, 1, (1 << 24) + 5, (1 << 26) - 1, 1 << 26] {
            assert_eq!(find(0xffff_f000 + offset), Some((3, offset)));
        }
        assert_eq!((find(u64::MAX), find(HERE.address_limit), find(0)), (None, None, None));
    }

    #[test]
    fn small_blocks_and_many_are_told_apart() {
        let blocks: Vec<KnownBlock> =
            (0..100_000).map(|number| block(0x5555_0000_0000 + number * 16, 1)).collect();
        let map = BlockMap::new(blocks);
        for number in 0..100_000_u64 {
            let hit = map.find(0x5555_0000_0000 + number * 16);
            assert_eq!(hit, Some(Hit { block: number as u32, offset_bytes: 0 }));
        }
    }

    #[test]
    fn of_blocks_that_overlap_each_ends_before_the_next() {
        let map = BlockMap::new(vec![block(0x1_0000, 100), block(0x1_0010, 8), block(0x1_0010, 8)]);
        assert_eq!(map.len(), 2);
        assert_eq!(map.find(0x1_0010).map(|hit| hit.block), Some(1));
        assert_eq!(map.find(0x1_000f).map(|hit| hit.block), Some(0));
        assert_eq!(map.find(0x1_0050), None);
    }
}
