//! The live blocks, by process, heap and address, laid out as the heap itself is.
//!
//! ```text
//! directory (hash)                 groups                      records
//! (owner, address / 512,   -->  32 slots of 16 bytes    -->  size, time, stack, thread
//!  address % 16)                of heap: record number       (24 bytes, free ones reused, last freed first)
//! ```
//!
//! An allocator hands out neighbours one after the other, and programs free neighbours together: a group's slots share two
//! cache lines, four neighbouring groups share a line of the directory, and records taken one after the other lie one after
//! the other. (A plain hash table of blocks took 220 ns an event, in cache and page misses alone, on a program with a
//! million live blocks; two thirds of the recorder's time.) A block costs 24 bytes, its share of a group (128 bytes to 512
//! of heap) and of the directory; blocks of 512 bytes and more cost about 190.
//!
//! Empty groups stay until the directory is full; then they are swept out, or, if there are few, it grows.
//!
//! What still misses the caches is looked up for many events at once ([`BlockTable::hints`]): the processor waits for
//! all of those loads together instead of for one after the other.

use heapr_trace::{Block, HeapId, ProcessIndex, StackIndex, ThreadIndex};

/// Smallest directory.
const FIRST_CAPACITY: usize = 1 << 8;
/// Slots of a group.
const SLOT_COUNT: usize = 32;
/// Top bit of a record's thread: born of a realloc.
const IS_REALLOC: u32 = 1 << 31;

/// A place of the directory: 16 bytes.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Address / 512 in the upper bits, address % 16 in the lower four.
    key: u64,
    /// Process + 1 (24 bits), heap (8 bits); 0: no group.
    owner: u32,
    group: u32,
}

const NO_PLACE: Place = Place { key: 0, owner: 0, group: 0 };

/// Record numbers + 1; 0: no block.
type Group = [u32; SLOT_COUNT];

/// What a group covers: its place without the directory's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Home {
    key: u64,
    owner: u32,
    block_count: u32,
}

/// The group that an address probably belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint(u32);

impl Hint {
    /// Nothing is known.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

#[derive(Debug, Clone, Copy)]
struct Record {
    size_bytes: u64,
    alloc_ns: u64,
    stack: u32,
    thread: u32,
}

impl Record {
    fn new(block: &Block) -> Self {
        Self {
            size_bytes: block.size_bytes,
            alloc_ns: block.alloc_ns,
            stack: block.stack.0,
            thread: block.thread.0 & !IS_REALLOC | if block.is_realloc { IS_REALLOC } else { 0 },
        }
    }

    fn block(&self, owner: u32, address_avma: u64) -> Block {
        Block {
            process: ProcessIndex((owner >> 8).wrapping_sub(1)),
            heap: HeapId(owner as u8),
            address_avma,
            size_bytes: self.size_bytes,
            stack: StackIndex(self.stack),
            thread: ThreadIndex(self.thread & !IS_REALLOC),
            alloc_ns: self.alloc_ns,
            is_realloc: self.thread & IS_REALLOC != 0,
        }
    }
}

fn owner(process: ProcessIndex, heap: HeapId) -> u32 {
    process.0.wrapping_add(1) << 8 | u32::from(heap.0)
}

fn key(address: u64) -> u64 {
    address >> 9 << 4 | address & 15
}

fn slot(address: u64) -> usize {
    (address >> 4) as usize % SLOT_COUNT
}

fn address(key: u64, slot: usize) -> u64 {
    key >> 4 << 9 | (slot as u64) << 4 | key & 15
}

/// Live blocks.
#[derive(Debug)]
pub(crate) struct BlockTable {
    directory: Vec<Place>,
    groups: Vec<Group>,
    /// By group; an owner of 0: the group is not in use.
    homes: Vec<Home>,
    free_groups: Vec<u32>,
    records: Vec<Record>,
    free_records: Vec<u32>,
}

impl BlockTable {
    pub(crate) fn new() -> Self {
        Self {
            directory: vec![NO_PLACE; FIRST_CAPACITY],
            groups: Vec::new(),
            homes: Vec::new(),
            free_groups: Vec::new(),
            records: Vec::new(),
            free_records: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len() - self.free_records.len()
    }

    /// The place of a group, or the one where it belongs.
    #[inline(always)]
    fn find(&self, owner: u32, key: u64) -> Result<usize, usize> {
        let mask = self.directory.len() - 1;
        // The lowest two bits of address / 512 stay as they are: four neighbours share a cache line. Folding the
        // product's halves makes its low bits depend on the whole key.
        let mixed = key >> 6 ^ (key & 15) << 60 ^ u64::from(owner).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let product = u128::from(mixed) * 0x9e37_79b9_7f4a_7c15;
        let hash = (product >> 64) as u64 ^ product as u64;
        let mut place = (hash << 2 | key >> 4 & 3) as usize & mask;
        loop {
            let found = &self.directory[place];
            if found.owner == 0 {
                return Err(place);
            }
            if found.key == key && found.owner == owner {
                return Ok(place);
            }
            place = (place + 1) & mask;
        }
    }

    /// Looks up where blocks are, and pulls what is known of them into the caches.
    #[inline]
    pub(crate) fn hints(&self, wanted: impl Iterator<Item = (ProcessIndex, HeapId, u64)>, hints: &mut [Hint]) {
        let mut touched = 0;
        for ((process, heap, address), hint) in wanted.zip(hints) {
            let Ok(place) = self.find(owner(process, heap), key(address)) else {
                *hint = Hint::NONE;
                continue;
            };
            let group = self.directory[place].group;
            *hint = Hint(group);
            let number = self.groups[group as usize][slot(address)];
            if let Some(record) = self.records.get((number as usize).wrapping_sub(1)) {
                touched ^= record.stack;
            }
            touched ^= self.homes[group as usize].owner;
        }
        // The loads must happen; what they load is of no interest yet.
        std::hint::black_box(touched);
    }

    /// The group of an address, if it has one.
    #[inline(always)]
    fn group(&self, owner: u32, key: u64, hint: Hint) -> Option<usize> {
        let hinted = hint.0 as usize;
        if self.homes.get(hinted).is_some_and(|home| home.key == key && home.owner == owner) {
            return Some(hinted);
        }
        self.find(owner, key).ok().map(|place| self.directory[place].group as usize)
    }

    #[inline]
    fn add_group(&mut self, owner: u32, key: u64) -> usize {
        // At most 5/8 full: with linear probing a miss then looks at four places on average.
        if (self.groups.len() - self.free_groups.len()) * 8 >= self.directory.len() * 5 {
            self.sweep();
        }
        let home = Home { key, owner, block_count: 0 };
        let group = match self.free_groups.pop() {
            Some(group) => {
                self.homes[group as usize] = home;
                group
            }
            None => {
                self.groups.push([0; SLOT_COUNT]);
                self.homes.push(home);
                (self.groups.len() - 1) as u32
            }
        };
        if let Err(place) = self.find(owner, key) {
            self.directory[place] = Place { key, owner, group };
        }
        group as usize
    }

    /// Puts a block in; gives back the one that was live at its address.
    #[inline(always)]
    pub(crate) fn insert(&mut self, block: &Block, hint: Hint) -> Option<Block> {
        let (owner, key) = (owner(block.process, block.heap), key(block.address_avma));
        let group = match self.group(owner, key, hint) {
            Some(group) => group,
            None => self.add_group(owner, key),
        };
        let record = Record::new(block);
        let number = &mut self.groups[group][slot(block.address_avma)];
        if *number != 0 {
            let old = std::mem::replace(&mut self.records[*number as usize - 1], record);
            return Some(old.block(owner, block.address_avma));
        }
        self.homes[group].block_count += 1;
        match self.free_records.pop() {
            Some(free) => {
                self.records[free as usize] = record;
                *number = free + 1;
            }
            None => {
                self.records.push(record);
                *number = self.records.len() as u32;
            }
        }
        None
    }

    /// Takes a block out.
    #[inline(always)]
    pub(crate) fn remove(
        &mut self,
        process: ProcessIndex,
        heap: HeapId,
        address: u64,
        hint: Hint,
    ) -> Option<Block> {
        let owner = owner(process, heap);
        let group = self.group(owner, key(address), hint)?;
        let number = &mut self.groups[group][slot(address)];
        let record = std::mem::take(number).checked_sub(1)?;
        self.homes[group].block_count -= 1;
        self.free_records.push(record);
        Some(self.records[record as usize].block(owner, address))
    }

    /// Drops empty groups; makes the directory larger if that is not enough.
    #[cold]
    fn sweep(&mut self) {
        for (group, home) in self.homes.iter_mut().enumerate() {
            if home.owner != 0 && home.block_count == 0 {
                home.owner = 0;
                self.free_groups.push(group as u32);
            }
        }
        // Half of what may be used at most: the next sweep is as far away as this one's work was large.
        let kept = self.groups.len() - self.free_groups.len();
        let mut capacity = self.directory.len();
        while kept * 16 > capacity * 5 {
            capacity *= 2;
        }
        self.lay(capacity);
    }

    /// Makes the directory anew.
    fn lay(&mut self, capacity: usize) {
        self.directory = vec![NO_PLACE; capacity];
        for group in 0..self.homes.len() {
            let Home { key, owner, .. } = self.homes[group];
            if owner != 0
                && let Err(free) = self.find(owner, key)
            {
                self.directory[free] = Place { key, owner, group: group as u32 };
            }
        }
    }

    /// All live blocks, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Block> + '_ {
        // By group, not by directory: groups and records lie in the order in which they were first used.
        let used = self.homes.iter().zip(&self.groups).filter(|(home, _)| home.block_count != 0);
        used.flat_map(|(home, group)| {
            group.iter().enumerate().filter_map(|(slot, &number)| {
                let record = &self.records[number.checked_sub(1)? as usize];
                Some(record.block(home.owner, address(home.key, slot)))
            })
        })
    }

    /// Takes out the blocks of a process.
    pub(crate) fn remove_process(&mut self, process: ProcessIndex) {
        let gone = process.0.wrapping_add(1) & 0xff_ffff;
        for (number, home) in self.homes.iter_mut().enumerate() {
            if home.owner == 0 || home.owner >> 8 != gone {
                continue;
            }
            let group = &mut self.groups[number];
            self.free_records.extend(group.iter().filter(|&&number| number != 0).map(|&number| number - 1));
            *group = [0; SLOT_COUNT];
            *home = Home { key: 0, owner: 0, block_count: 0 };
            self.free_groups.push(number as u32);
        }
        if self.free_groups.len() == self.groups.len() {
            *self = Self::new();
        } else {
            self.lay(self.directory.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_a_slot_of_its_own() {
        for base in [0_u64, 0x7fff_ffff_f000, u64::MAX - 0xfff] {
            for offset in 0..0x1000 {
                let wanted = base + offset;
                assert_eq!(address(key(wanted), slot(wanted)), wanted);
            }
        }
    }
}
