//! The live blocks, by process, heap and address, in the layout of the heap itself.
//!
//! ```text
//! directory (hash): regions                      groups                       records
//! (owner, address / 32 KiB, address % 16)   -->  32 slots of 16          -->  size, time, stack, thread
//! up to 64 parts of 512 bytes: group             bytes of heap: record        (24 bytes; the last freed is
//!                                                                             the next to be used)
//! ```
//!
//! An allocator hands out neighbouring blocks one after the other, and programs free neighbours
//! together. Neighbours therefore share cache lines at each level, and records allocated in
//! sequence lie in sequence. (A plain hash table of blocks took 220 ns per event on a program with
//! a million live blocks, in cache and page misses alone. That was two thirds of the recorder's
//! time.)
//!
//! Regions and groups hold only the entries that exist (`runs`, `group`). A block costs 24 bytes,
//! and its share of a group and of a region. A group covers 512 bytes of heap and takes 24 bytes,
//! plus 32 for more than four blocks, or 128 from nine on. A region covers 32 KiB and takes 32
//! bytes in the directory, 16 bytes, and a word for each group. So a block of 1,000 bytes takes 57
//! bytes, and one of 48 bytes takes 35.
//!
//! Empty groups, and rooms that are too large for their contents, stay until the next sweep. A
//! sweep is due when there are twice as many groups, or rooms, as after the last one. It frees them
//! and their regions ([`BlockTable::tidy_up`], between batches of events that are looked up
//! together).
//!
//! The most recently used groups are cached (`recent_groups`), because most blocks lie in one of
//! them. Blocks that still miss the caches are looked up for many events at once
//! ([`BlockTable::hint_in`], [`BlockTable::prefetch`]). The processor then waits for all of those
//! loads together instead of for one after the other.

use heapr_trace::{Block, HeapId, ProcessIndex, StackIndex};

use crate::block_record::{BlockRecord, owner};
use crate::cut::Cut;
use crate::group::{Group, Rooms, SLOT_COUNT};
use crate::recent_groups::RecentGroups;
use crate::runs::{Run, Runs};

/// Smallest size of the directory.
const FIRST_CAPACITY: usize = 1 << 6;
/// Least number of groups at which a sweep pays: they take 2 MiB.
///
/// (A garbage-collected program returns to addresses that it has left. An example is Node's table,
/// with buffers that come and go on 60 MiB. Sweeps at 2^10 took 3 ns per event, and at 2^14 they
/// took 2. At 2^16 there are no sweeps.)
const SWEPT_MIN: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };
/// Least number of rooms at which a sweep pays: they take 2 MiB at most.
const SWEPT_ROOMS_MIN: usize = if cfg!(test) { 1 << 7 } else { 1 << 14 };
/// Number of groups per region, as bits.
const PART_BITS: u32 = 6;
const PART_COUNT: usize = 1 << PART_BITS;

/// Limits of the numbers of records and of regions: more would take 100 GB.
const RECORDS_MAX: usize = u32::MAX as usize;
const REGIONS_MAX: usize = 1 << 26;

/// An entry of the directory: half a cache line.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Key of the region: that of a group without the part.
    key: u64,
    /// Owner: process + 1 (24 bits), heap (8 bits); 0: no region.
    owner: u32,
    region: u32,
    /// Numbers of the region's groups.
    groups: Run,
}

const _: () = assert!(size_of::<Place>() == 32);

const NO_PLACE: Place = Place { key: 0, owner: 0, region: 0, groups: Run::EMPTY };

/// Key and owner of a region, to find them from a group.
#[derive(Debug, Clone, Copy)]
struct Region {
    key: u64,
    owner: u32,
}

/// The group of an address, as found by an earlier look-up. Valid until the table is tidied up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint(u32);

impl Hint {
    /// A hint without a group.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Address bits of a slot in its group, and of a group in its region.
const SLOT_BITS: u64 = 0x1f << 4;
const GROUP_BITS: u64 = 0x3f << 9;

/// Key of an address's group: the address without its slot. It holds the 512-byte range and address
/// % 16, because blocks of different alignments have different groups. (The keys of a group and of
/// a region are each a single mask of the address, without a shift.)
fn key(address: u64) -> u64 {
    address & !SLOT_BITS
}

fn slot(address: u64) -> usize {
    (address >> 4) as usize % SLOT_COUNT
}

/// Index of the group with this key in its region.
fn part(key: u64) -> usize {
    (key >> 9) as usize % PART_COUNT
}

fn region_key(key: u64) -> u64 {
    key & !GROUP_BITS
}

fn address(key: u64, slot: usize) -> u64 {
    key | (slot as u64) << 4
}

/// Table of the live blocks.
#[derive(Debug)]
pub(crate) struct BlockTable {
    recent: RecentGroups,
    /// Number of look-ups that missed `recent`.
    far_count: u32,
    directory: Vec<Place>,
    /// Shift that turns a hash into an index of the directory: 64 minus the index's bits.
    directory_shift: u32,
    regions: Vec<Region>,
    region_runs: Runs,
    free_regions: Vec<u32>,
    groups: Vec<Group>,
    rooms: Rooms,
    free_groups: Vec<u32>,
    /// Number of groups in use at which the next sweep is due.
    sweep_at: usize,
    /// Number of rooms in use at which the next sweep is due.
    sweep_at_rooms: usize,
    records: Vec<BlockRecord>,
    /// Numbers of free records. (A list through the records themselves would wait for one cache
    /// miss after the other when many old records are reused.)
    free_records: Vec<u32>,
    cut: Cut,
}

impl BlockTable {
    pub(crate) fn new() -> Self {
        Self {
            recent: RecentGroups::new(),
            far_count: 0,
            directory: vec![NO_PLACE; FIRST_CAPACITY],
            directory_shift: 64 - FIRST_CAPACITY.trailing_zeros(),
            regions: Vec::new(),
            region_runs: Runs::default(),
            free_regions: Vec::new(),
            groups: Vec::new(),
            rooms: Rooms::default(),
            free_groups: Vec::new(),
            sweep_at: SWEPT_MIN,
            sweep_at_rooms: SWEPT_ROOMS_MIN,
            records: Vec::new(),
            free_records: Vec::new(),
            cut: Cut::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len() - self.free_records.len()
    }

    /// Whether the table fits the second-level cache (1 MiB and more on today's processors). If so,
    /// looking blocks up in advance gains nothing.
    pub(crate) fn is_small(&self) -> bool {
        const RECORDS: usize = 1 << 13;
        self.records.len() < RECORDS
    }

    /// Number of look-ups without a hint that missed the recently used groups. Wraps around.
    #[inline(always)]
    pub(crate) fn far_count(&self) -> u32 {
        self.far_count
    }

    /// Index of a region in the directory; `Err` with the index of a free entry if it is missing.
    #[inline(always)]
    fn find(&self, owner: u32, key: u64) -> Result<usize, usize> {
        let key = region_key(key);
        let mask = self.directory.len() - 1;
        // Hash with the golden ratio: neighbouring regions, the most common case, hardly collide.
        // (The multiplier lacks 15 bits because regions lie 2^15 apart.)
        let product = (key ^ u64::from(owner) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15 >> 15);
        let mut place = (product >> (self.directory_shift & 63)) as usize & mask;
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

    /// The group of an address, if it exists.
    #[inline(always)]
    fn group(&self, owner: u32, key: u64) -> Option<usize> {
        let place = self.find(owner, key).ok()?;
        self.region_runs.get(&self.directory[place].groups, part(key)).map(|group| group as usize)
    }

    #[inline(always)]
    fn hinted_group(&mut self, owner: u32, key: u64, hint: Hint) -> Option<usize> {
        if hint != Hint::NONE {
            return Some(hint.0 as usize);
        }
        if let Some(group) = self.recent.get(owner, key) {
            return Some(group as usize);
        }
        self.far_count = self.far_count.wrapping_add(1);
        let group = self.group(owner, key)?;
        self.recent.put(owner, key, group as u32);
        Some(group)
    }

    /// Index of an address's region in the directory, for [`Self::hint_in`].
    #[inline(always)]
    pub(crate) fn place(&self, process: ProcessIndex, heap: HeapId, address: u64) -> u32 {
        self.find(owner(process, heap), key(address)).map_or(u32::MAX, |place| place as u32)
    }

    /// Looks up the group of an address in its region.
    #[inline(always)]
    pub(crate) fn hint_in(&self, place: u32, address: u64) -> Hint {
        let place = self.directory.get(place as usize);
        let group = place.and_then(|place| self.region_runs.get(&place.groups, part(key(address))));
        group.map_or(Hint::NONE, Hint)
    }

    /// Loads a group into the caches. The result has no meaning.
    #[inline(always)]
    pub(crate) fn touch(&self, hint: Hint) -> u32 {
        self.groups.get(hint.0 as usize).map_or(0, |group| group.home)
    }

    /// Looks up the group of an address.
    #[cfg(test)]
    #[inline(always)]
    pub(crate) fn hint(&self, process: ProcessIndex, heap: HeapId, address: u64) -> Hint {
        self.group(owner(process, heap), key(address)).map_or(Hint::NONE, |group| Hint(group as u32))
    }

    /// Loads a block's slot into the caches. Returns the number of its record plus one; 0 if there
    /// is no block.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hint: Hint, address: u64) -> u32 {
        let group = self.groups.get(hint.0 as usize);
        group.and_then(|group| self.rooms.get(group, slot(address))).map_or(0, |record| record + 1)
    }

    /// The stack of a record whose number [`BlockTable::prefetch`] returned.
    #[inline(always)]
    pub(crate) fn stack_of(&self, number: u32) -> StackIndex {
        let record = self.records.get((number as usize).wrapping_sub(1));
        // A record may lie across two cache lines: its first word is read to load both.
        record
            .filter(|record| record.size_bytes != u64::MAX)
            .map_or(StackIndex::EMPTY, |record| StackIndex(record.stack))
    }

    /// Frees groups without blocks, and rooms, when there are many. Earlier hints become invalid.
    #[inline(always)]
    pub(crate) fn tidy_up(&mut self) {
        if self.groups.len() - self.free_groups.len() >= self.sweep_at
            || self.rooms.count() >= self.sweep_at_rooms
        {
            self.sweep();
        }
    }

    /// Adds a group; `None` if the table is full.
    #[inline]
    fn add_group(&mut self, owner: u32, key: u64) -> Option<usize> {
        let place = match self.find(owner, key) {
            Ok(place) => place,
            Err(_) => self.add_region(owner, key)?,
        };
        let new = Group::new(self.directory[place].region << PART_BITS | part(key) as u32);
        let group = match self.free_groups.pop() {
            Some(group) => {
                self.groups[group as usize] = new;
                group
            }
            None => {
                self.groups.push(new);
                (self.groups.len() - 1) as u32
            }
        };
        self.region_runs.insert(&mut self.directory[place].groups, part(key), group);
        Some(group as usize)
    }

    /// Adds a region; returns its index in the directory.
    fn add_region(&mut self, owner: u32, key: u64) -> Option<usize> {
        // At most 5/8 full: with linear probing a miss then examines four entries on average.
        if (self.regions.len() + 1 - self.free_regions.len()) * 8 >= self.directory.len() * 5 {
            let places: Vec<Place> =
                self.directory.iter().filter(|place| place.owner != 0).copied().collect();
            self.lay(&places, self.directory.len() * 2);
        }
        let key = region_key(key);
        let new = Region { key, owner };
        let region = match self.free_regions.pop() {
            Some(region) => {
                self.regions[region as usize] = new;
                region
            }
            None if self.regions.len() >= REGIONS_MAX => return None,
            None => {
                self.regions.push(new);
                (self.regions.len() - 1) as u32
            }
        };
        let place = self.find(owner, key).unwrap_or_else(|free| free);
        self.directory[place] = Place { key, owner, region, groups: Run::EMPTY };
        Some(place)
    }

    /// Owner and key of a group.
    fn home(&self, group: &Group) -> (u32, u64) {
        let region = self.regions[(group.home >> PART_BITS) as usize];
        (region.owner, region.key | u64::from(group.home % PART_COUNT as u32) << 9)
    }

    /// Inserts a block; returns the block that was live at its address.
    #[inline(always)]
    pub(crate) fn insert(&mut self, block: &Block, hint: Hint) -> Option<Block> {
        let (owner, key) = (owner(block.process, block.heap), key(block.address_avma));
        let group = match self.hinted_group(owner, key, hint) {
            Some(group) => group,
            None => {
                let group = self.add_group(owner, key)?;
                self.recent.put(owner, key, group as u32);
                group
            }
        };
        if self.cut.watches(group) {
            self.put_aside(group, slot(block.address_avma));
        }
        let record = BlockRecord::new(block);
        let group = &mut self.groups[group];
        if let Some(number) = self.rooms.get(group, slot(block.address_avma)) {
            let old = std::mem::replace(&mut self.records[number as usize], record);
            return Some(old.block(owner, block.address_avma));
        }
        let number = match self.free_records.pop() {
            Some(free) => {
                self.records[free as usize] = record;
                free
            }
            None if self.records.len() >= RECORDS_MAX => return None,
            None => {
                self.records.push(record);
                (self.records.len() - 1) as u32
            }
        };
        self.rooms.insert(group, slot(block.address_avma), number);
        None
    }

    /// Whether a live block begins at an address.
    pub(crate) fn has(&self, process: ProcessIndex, heap: HeapId, address: u64) -> bool {
        let group = self.group(owner(process, heap), key(address));
        group.is_some_and(|group| self.rooms.get(&self.groups[group], slot(address)).is_some())
    }

    /// Removes a block.
    #[inline(always)]
    pub(crate) fn remove(
        &mut self,
        process: ProcessIndex,
        heap: HeapId,
        address: u64,
        hint: Hint,
    ) -> Option<Block> {
        let owner = owner(process, heap);
        let group = self.hinted_group(owner, key(address), hint)?;
        if self.cut.watches(group) {
            self.put_aside(group, slot(address));
        }
        let number = self.rooms.remove(&mut self.groups[group], slot(address))?;
        self.free_records.push(number);
        Some(self.records[number as usize].block(owner, address))
    }

    /// Saves the block in a slot for the cut, before the slot changes.
    #[cold]
    fn put_aside(&mut self, group: usize, slot: usize) {
        if self.cut.mark(group, slot)
            && let Some(block) = self.block_at(group, slot)
        {
            self.cut.put_aside.push(block);
        }
    }

    fn block_at(&self, group: usize, slot: usize) -> Option<Block> {
        let group = &self.groups[group];
        let record = &self.records[self.rooms.get(group, slot)? as usize];
        let (owner, key) = self.home(group);
        Some(record.block(owner, address(key, slot)))
    }
}

mod cut_pass;
mod listing;
mod sweep;
#[cfg(test)]
mod tests;
