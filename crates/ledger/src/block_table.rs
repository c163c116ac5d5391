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
    place_count: usize,
    groups: Vec<Group>,
    free_groups: Vec<u32>,
    records: Vec<Record>,
    free_records: Vec<u32>,
    /// The group that was found last.
    last: Place,
}

impl BlockTable {
    pub(crate) fn new() -> Self {
        Self {
            directory: vec![NO_PLACE; FIRST_CAPACITY],
            place_count: 0,
            groups: Vec::new(),
            free_groups: Vec::new(),
            records: Vec::new(),
            free_records: Vec::new(),
            last: NO_PLACE,
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
        let product =
            u128::from(key >> 6 ^ (key & 15) << 60 ^ u64::from(owner).wrapping_mul(0xd6e8_feb8_6659_fd93))
                * 0x9e37_79b9_7f4a_7c15;
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

    /// The group of an address, if it has one.
    #[inline(always)]
    fn group(&mut self, owner: u32, key: u64) -> Option<usize> {
        if self.last.key == key && self.last.owner == owner {
            return Some(self.last.group as usize);
        }
        self.last = self.directory[self.find(owner, key).ok()?];
        Some(self.last.group as usize)
    }

    #[inline]
    fn add_group(&mut self, owner: u32, key: u64) -> usize {
        // At most 5/8 full: with linear probing a miss then looks at four places on average.
        if self.place_count * 8 >= self.directory.len() * 5 {
            self.sweep();
        }
        let group = match self.free_groups.pop() {
            Some(group) => group,
            None => {
                self.groups.push([0; SLOT_COUNT]);
                (self.groups.len() - 1) as u32
            }
        };
        let place = match self.find(owner, key) {
            Ok(place) | Err(place) => place,
        };
        self.last = Place { key, owner, group };
        self.directory[place] = self.last;
        self.place_count += 1;
        group as usize
    }

    /// Puts a block in; gives back the one that was live at its address.
    #[inline]
    pub(crate) fn insert(&mut self, block: &Block) -> Option<Block> {
        let (owner, key) = (owner(block.process, block.heap), key(block.address_avma));
        let group = match self.group(owner, key) {
            Some(group) => group,
            None => self.add_group(owner, key),
        };
        let record = Record::new(block);
        let number = &mut self.groups[group][slot(block.address_avma)];
        if *number != 0 {
            let old = std::mem::replace(&mut self.records[*number as usize - 1], record);
            return Some(old.block(owner, block.address_avma));
        }
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
    #[inline]
    pub(crate) fn remove(&mut self, process: ProcessIndex, heap: HeapId, address: u64) -> Option<Block> {
        let owner = owner(process, heap);
        let group = self.group(owner, key(address))?;
        let number = &mut self.groups[group][slot(address)];
        let record = std::mem::take(number).checked_sub(1)?;
        self.free_records.push(record);
        Some(self.records[record as usize].block(owner, address))
    }

    /// Drops empty groups; doubles the directory if that is not enough.
    #[cold]
    fn sweep(&mut self) {
        let groups = &self.groups;
        let is_empty = |place: &Place| groups[place.group as usize].iter().all(|&number| number == 0);
        let places: Vec<Place> = self.directory.iter().filter(|place| place.owner != 0).copied().collect();
        let (empty, kept): (Vec<Place>, Vec<Place>) = places.into_iter().partition(is_empty);
        let mut capacity = self.directory.len();
        // Half of what may be used at most: the next sweep is as far away as this one's work was large.
        while kept.len() * 16 > capacity * 5 {
            capacity *= 2;
        }
        self.free_groups.extend(empty.iter().map(|place| place.group));
        self.lay(capacity, &kept);
    }

    /// Makes the directory anew.
    fn lay(&mut self, capacity: usize, kept: &[Place]) {
        self.last = NO_PLACE;
        self.directory = vec![NO_PLACE; capacity];
        self.place_count = kept.len();
        for place in kept {
            if let Err(free) = self.find(place.owner, place.key) {
                self.directory[free] = *place;
            }
        }
    }

    /// All live blocks, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Block> + '_ {
        self.directory.iter().filter(|place| place.owner != 0).flat_map(|place| {
            self.groups[place.group as usize].iter().enumerate().filter_map(|(slot, &number)| {
                let record = &self.records[number.checked_sub(1)? as usize];
                Some(record.block(place.owner, address(place.key, slot)))
            })
        })
    }

    /// Takes out the blocks of a process.
    pub(crate) fn remove_process(&mut self, process: ProcessIndex) {
        let gone = process.0.wrapping_add(1) & 0xff_ffff;
        let places = self.directory.iter().filter(|place| place.owner != 0).copied();
        let (dropped, kept): (Vec<Place>, Vec<Place>) = places.partition(|place| place.owner >> 8 == gone);
        if kept.is_empty() {
            *self = Self::new();
            return;
        }
        for place in dropped {
            let group = &mut self.groups[place.group as usize];
            self.free_records.extend(group.iter().filter(|&&number| number != 0).map(|&number| number - 1));
            *group = [0; SLOT_COUNT];
            self.free_groups.push(place.group);
        }
        self.lay(self.directory.len(), &kept);
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
