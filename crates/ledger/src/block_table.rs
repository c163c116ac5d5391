//! The live blocks, by process, heap and address, laid out as the heap itself is.
//!
//! ```text
//! directory (hash): regions                      groups                       records
//! (owner, address / 32 KiB, address % 16)   -->  32 slots of 16          -->  size, time, stack, thread
//! up to 64 parts of 512 bytes: group             bytes of heap: record        (24 bytes; the last freed is
//!                                                                             the next to be used)
//! ```
//!
//! An allocator hands out neighbours one after the other, and programs free neighbours together:
//! neighbours share cache lines at each level, and records taken one after the other lie one after
//! the other. (A plain hash table of blocks took 220 ns an event, in cache and page misses alone,
//! on a program with a million live blocks: two thirds of the recorder's time.) Regions and groups
//! hold only what is there (`runs`, `group`): a block costs 24 bytes, its share of a group (24
//! bytes to 512 of heap; 32 more where there are more than four blocks, or 128 from nine on) and of
//! a region (its place in the directory of 32 bytes, a word for each group, 16 bytes to 32 KiB). A
//! block of 1,000 bytes takes 57 bytes so, one of 48 bytes 35.
//!
//! Empty groups, and rooms that are too large for what is left in them, stay until there are twice
//! as many groups, or rooms, as after the last sweep; then they and their regions are given back
//! ([`BlockTable::tidy_up`], between events that are looked up together).
//!
//! The groups that were looked for last are remembered (`recent_groups`): most blocks lie in one of
//! them. What misses the caches all the same is looked up for many events at once
//! ([`BlockTable::hint_in`], [`BlockTable::prefetch`]): the processor waits for all of those loads
//! together instead of for one after the other.

use heapr_trace::{Block, HeapId, ProcessIndex, StackIndex};

use crate::block_record::{BlockRecord, owner};
use crate::cut::Cut;
use crate::group::{Group, Rooms, SLOT_COUNT};
use crate::recent_groups::RecentGroups;
use crate::runs::{Run, Runs};

/// Smallest directory.
const FIRST_CAPACITY: usize = 1 << 6;
/// Fewest groups that are worth a sweep: they take 2 MiB. (A program that collects its garbage
/// comes back to the addresses that it has left. Of Node's table, with buffers that come and go on
/// 60 MiB, sweeps at 2^10 took 3 ns an event, at 2^14 2, and at 2^16 there are none.)
const SWEPT_MIN: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };
/// Fewest rooms that are: they take 2 MiB at most.
const SWEPT_ROOMS_MIN: usize = if cfg!(test) { 1 << 7 } else { 1 << 14 };
/// Groups of a region.
const PART_BITS: u32 = 6;
const PART_COUNT: usize = 1 << PART_BITS;

/// Numbers of records and regions are below these: more would take 100 GB.
const RECORDS_MAX: usize = u32::MAX as usize;
const REGIONS_MAX: usize = 1 << 26;

/// A place of the directory: half a cache line.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// As a group's key, without the part.
    key: u64,
    /// Process + 1 (24 bits), heap (8 bits); 0: no region.
    owner: u32,
    region: u32,
    /// The numbers of its groups.
    groups: Run,
}

const _: () = assert!(size_of::<Place>() == 32);

const NO_PLACE: Place = Place { key: 0, owner: 0, region: 0, groups: Run::EMPTY };

/// What a region covers: for those who come from a group.
#[derive(Debug, Clone, Copy)]
struct Region {
    key: u64,
    owner: u32,
}

/// The group that an address belongs to, if it had one when that was looked up. Good until the
/// table is tidied up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint(u32);

impl Hint {
    /// Nothing is known.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Bits of an address that tell its group's slots apart, and those that tell its region's groups
/// apart.
const SLOT_BITS: u64 = 0x1f << 4;
const GROUP_BITS: u64 = 0x3f << 9;

/// An address without its slot: which 512 bytes, and address % 16, as blocks of other alignments
/// have groups of their own. (Nothing is shifted: a mask each makes of an address its group's key
/// and its region's.)
fn key(address: u64) -> u64 {
    address & !SLOT_BITS
}

fn slot(address: u64) -> usize {
    (address >> 4) as usize % SLOT_COUNT
}

/// The part of its region that a group with this key is.
fn part(key: u64) -> usize {
    (key >> 9) as usize % PART_COUNT
}

fn region_key(key: u64) -> u64 {
    key & !GROUP_BITS
}

fn address(key: u64, slot: usize) -> u64 {
    key | (slot as u64) << 4
}

/// Live blocks.
#[derive(Debug)]
pub(crate) struct BlockTable {
    recent: RecentGroups,
    /// How often a group was not among those.
    far_count: u32,
    directory: Vec<Place>,
    /// 64 without the bits of a place's number.
    directory_shift: u32,
    regions: Vec<Region>,
    region_runs: Runs,
    free_regions: Vec<u32>,
    groups: Vec<Group>,
    rooms: Rooms,
    free_groups: Vec<u32>,
    /// Groups in use when the next sweep is due.
    sweep_at: usize,
    /// And rooms.
    sweep_at_rooms: usize,
    records: Vec<BlockRecord>,
    /// (Not a list through the records themselves: where many are taken that were freed long ago it
    /// waits for one cache miss after the other.)
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

    /// Whether all of it lies in the second-level cache anyway (1 MiB and more on today's
    /// processors): there is nothing to gain from looking blocks up in advance.
    pub(crate) fn is_small(&self) -> bool {
        const RECORDS: usize = 1 << 13;
        self.records.len() < RECORDS
    }

    /// How many blocks were looked for, without a hint, that were not near those looked for last.
    /// Goes round.
    #[inline(always)]
    pub(crate) fn far_count(&self) -> u32 {
        self.far_count
    }

    /// The place of a region, or the one where it belongs.
    #[inline(always)]
    fn find(&self, owner: u32, key: u64) -> Result<usize, usize> {
        let key = region_key(key);
        let mask = self.directory.len() - 1;
        // The golden ratio: of neighbours, which most regions are, hardly two meet. (Without the 15
        // bits by which they lie apart.)
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

    /// The group of an address, if it has one.
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

    /// The place of an address's region, for [`Self::hint_in`].
    #[inline(always)]
    pub(crate) fn place(&self, process: ProcessIndex, heap: HeapId, address: u64) -> u32 {
        self.find(owner(process, heap), key(address)).map_or(u32::MAX, |place| place as u32)
    }

    /// Looks up where a block is, in its region.
    #[inline(always)]
    pub(crate) fn hint_in(&self, place: u32, address: u64) -> Hint {
        let place = self.directory.get(place as usize);
        let group = place.and_then(|place| self.region_runs.get(&place.groups, part(key(address))));
        group.map_or(Hint::NONE, Hint)
    }

    /// Pulls what is known of a group into the caches; what it answers means nothing.
    #[inline(always)]
    pub(crate) fn touch(&self, hint: Hint) -> u32 {
        self.groups.get(hint.0 as usize).map_or(0, |group| group.home)
    }

    /// Looks up where a block is.
    #[cfg(test)]
    #[inline(always)]
    pub(crate) fn hint(&self, process: ProcessIndex, heap: HeapId, address: u64) -> Hint {
        self.group(owner(process, heap), key(address)).map_or(Hint::NONE, |group| Hint(group as u32))
    }

    /// Pulls what is known of a block into the caches; the number of its record plus one, 0 for
    /// none.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hint: Hint, address: u64) -> u32 {
        let group = self.groups.get(hint.0 as usize);
        group.and_then(|group| self.rooms.get(group, slot(address))).map_or(0, |record| record + 1)
    }

    /// The stack of a record that [`BlockTable::prefetch`] has named.
    #[inline(always)]
    pub(crate) fn stack_of(&self, number: u32) -> StackIndex {
        let record = self.records.get((number as usize).wrapping_sub(1));
        // A record may lie across two cache lines: its first word is read for the sake of the
        // caches.
        record
            .filter(|record| record.size_bytes != u64::MAX)
            .map_or(StackIndex::EMPTY, |record| StackIndex(record.stack))
    }

    /// Gives back groups without blocks, and rooms, when there are many. Hints of before are no
    /// longer good.
    #[inline(always)]
    pub(crate) fn tidy_up(&mut self) {
        if self.groups.len() - self.free_groups.len() >= self.sweep_at
            || self.rooms.count() >= self.sweep_at_rooms
        {
            self.sweep();
        }
    }

    /// A new group; `None` if there can be no more.
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

    /// Makes a region; its place.
    fn add_region(&mut self, owner: u32, key: u64) -> Option<usize> {
        // At most 5/8 full: with linear probing a miss then looks at four places on average.
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

    /// Whose a group is, and its key.
    fn home(&self, group: &Group) -> (u32, u64) {
        let region = self.regions[(group.home >> PART_BITS) as usize];
        (region.owner, region.key | u64::from(group.home % PART_COUNT as u32) << 9)
    }

    /// Puts a block in; gives back the one that was live at its address.
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

    /// Whether a block begins at an address.
    pub(crate) fn has(&self, process: ProcessIndex, heap: HeapId, address: u64) -> bool {
        let group = self.group(owner(process, heap), key(address));
        group.is_some_and(|group| self.rooms.get(&self.groups[group], slot(address)).is_some())
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
        let group = self.hinted_group(owner, key(address), hint)?;
        if self.cut.watches(group) {
            self.put_aside(group, slot(address));
        }
        let number = self.rooms.remove(&mut self.groups[group], slot(address))?;
        self.free_records.push(number);
        Some(self.records[number as usize].block(owner, address))
    }

    /// Keeps what a slot holds for the cut, before it changes.
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
