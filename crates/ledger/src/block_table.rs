//! The live blocks, by process, heap and address, laid out as the heap itself is.
//!
//! ```text
//! directory (hash)              regions               groups                       records
//! (owner, address / 32 KiB, --> up to 64 parts   -->  up to 32 slots of 16    -->  size, time, stack, thread
//!  address % 16)                of 512 bytes: group   bytes of heap: record        (24 bytes; the last freed is
//!                                                                                  the next to be used)
//! ```
//!
//! An allocator hands out neighbours one after the other, and programs free neighbours together: neighbours share cache
//! lines at each level, and records taken one after the other lie one after the other. (A plain hash table of blocks took
//! 220 ns an event, in cache and page misses alone, on a program with a million live blocks: two thirds of the recorder's
//! time.) Regions and groups hold only what is there (`runs`): a block costs 24 bytes and a word or two, its share of a group (24 bytes
//! to 512 of heap) and of a region (a word for each group, 16 bytes and its place in the directory to 32 KiB).
//!
//! Empty groups stay until there are twice as many groups as at the last sweep; then they and their regions are given back.
//!
//! What still misses the caches is looked up for many events at once ([`BlockTable::hint`], [`BlockTable::soon`]): the processor waits for
//! all of those loads together instead of for one after the other.

use heapr_trace::{Block, HeapId, ProcessIndex, StackIndex};

use crate::block_record::{BlockRecord, is_of, owner};
use crate::cut::Cut;
use crate::runs::{Run, Runs, places};

/// Smallest directory.
const FIRST_CAPACITY: usize = 1 << 6;
/// Fewest groups that are worth a sweep.
const SWEPT_MIN: usize = 1 << 10;
/// Slots of a group.
const SLOT_COUNT: usize = 32;
/// Groups of a region.
const PART_COUNT: usize = 64;

/// A place of the directory: 16 bytes.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// As a group's key, without the part.
    key: u64,
    /// Process + 1 (24 bits), heap (8 bits); 0: no region.
    owner: u32,
    region: u32,
}

const NO_PLACE: Place = Place { key: 0, owner: 0, region: 0 };

/// What a group covers, and the numbers of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Home {
    key: u64,
    /// 0: the group is not in use.
    owner: u32,
    records: Run<u32>,
}

/// The group that an address probably belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint(u32);

impl Hint {
    /// Nothing is known.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// Address / 512 in the upper bits, address % 16 in the lower four: blocks of other alignments have groups of their own.
fn key(address: u64) -> u64 {
    address >> 9 << 4 | address & 15
}

fn slot(address: u64) -> usize {
    (address >> 4) as usize % SLOT_COUNT
}

/// The part of its region that a group with this key is.
fn part(key: u64) -> usize {
    (key >> 4) as usize % PART_COUNT
}

fn region_key(key: u64) -> u64 {
    key & !(0x3f << 4)
}

fn address(key: u64, slot: usize) -> u64 {
    key >> 4 << 9 | (slot as u64) << 4 | key & 15
}

/// Live blocks.
#[derive(Debug)]
pub(crate) struct BlockTable {
    directory: Vec<Place>,
    /// The numbers of their groups.
    regions: Vec<Run<u64>>,
    region_runs: Runs,
    free_regions: Vec<u32>,
    /// By group.
    homes: Vec<Home>,
    runs: Runs,
    free_groups: Vec<u32>,
    /// Groups in use when the next sweep is due.
    sweep_at: usize,
    records: Vec<BlockRecord>,
    free_records: Vec<u32>,
    cut: Cut,
}

impl BlockTable {
    pub(crate) fn new() -> Self {
        Self {
            directory: vec![NO_PLACE; FIRST_CAPACITY],
            regions: Vec::new(),
            region_runs: Runs::default(),
            free_regions: Vec::new(),
            homes: Vec::new(),
            runs: Runs::default(),
            free_groups: Vec::new(),
            sweep_at: SWEPT_MIN,
            records: Vec::new(),
            free_records: Vec::new(),
            cut: Cut::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.records.len() - self.free_records.len()
    }

    /// Whether all of it lies in the second-level cache anyway (1 MiB and more on today's processors): there is nothing to gain
    /// from looking blocks up in advance.
    pub(crate) fn is_small(&self) -> bool {
        const RECORDS: usize = 1 << 13;
        self.records.len() < RECORDS
    }

    /// The place of a region, or the one where it belongs.
    #[inline(always)]
    fn find(&self, owner: u32, key: u64) -> Result<usize, usize> {
        let key = region_key(key);
        let mask = self.directory.len() - 1;
        // Folding the product's halves makes its low bits depend on the whole key.
        let product = u128::from(key ^ u64::from(owner) << 40) * 0x9e37_79b9_7f4a_7c15;
        let mut place = ((product >> 64) as u64 ^ product as u64) as usize & mask;
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
        let region = &self.regions[self.directory[place].region as usize];
        self.region_runs.get(region, part(key)).map(|group| group as usize)
    }

    #[inline(always)]
    fn hinted_group(&self, owner: u32, key: u64, hint: Hint) -> Option<usize> {
        let hinted = hint.0 as usize;
        if self.homes.get(hinted).is_some_and(|home| home.key == key && home.owner == owner) {
            return Some(hinted);
        }
        self.group(owner, key)
    }

    /// The region of an address, for [`Self::hint_in`].
    #[inline(always)]
    pub(crate) fn region(&self, process: ProcessIndex, heap: HeapId, address: u64) -> u32 {
        match self.find(owner(process, heap), key(address)) {
            Ok(place) => self.directory[place].region,
            Err(_) => u32::MAX,
        }
    }

    /// Looks up where a block is, in its region.
    #[inline(always)]
    pub(crate) fn hint_in(&self, region: u32, address: u64) -> Hint {
        let region = self.regions.get(region as usize);
        let group = region.and_then(|region| self.region_runs.get(region, part(key(address))));
        group.map_or(Hint::NONE, Hint)
    }

    /// Pulls what is known of a group into the caches; what it answers means nothing.
    #[inline(always)]
    pub(crate) fn touch(&self, hint: Hint) -> u32 {
        self.homes.get(hint.0 as usize).map_or(0, |home| home.records.taken)
    }

    /// Looks up where a block is.
    #[cfg(test)]
    #[inline(always)]
    pub(crate) fn hint(&self, process: ProcessIndex, heap: HeapId, address: u64) -> Hint {
        self.group(owner(process, heap), key(address)).map_or(Hint::NONE, |group| Hint(group as u32))
    }

    /// Pulls what is known of a block into the caches; the number of its record plus one, 0 for none.
    #[inline(always)]
    pub(crate) fn soon(&self, hint: Hint, address: u64) -> u32 {
        let home = self.homes.get(hint.0 as usize);
        home.and_then(|home| self.runs.get(&home.records, slot(address))).map_or(0, |record| record + 1)
    }

    /// The stack of a record that [`BlockTable::soon`] has named.
    #[inline(always)]
    pub(crate) fn stack_of(&self, number: u32) -> StackIndex {
        let record = self.records.get((number as usize).wrapping_sub(1));
        // A record may lie across two cache lines: its first word is read for the sake of the caches.
        record
            .filter(|record| record.size_bytes != u64::MAX)
            .map_or(StackIndex::EMPTY, |record| StackIndex(record.stack))
    }

    #[inline]
    fn add_group(&mut self, owner: u32, key: u64) -> usize {
        if self.homes.len() - self.free_groups.len() >= self.sweep_at {
            self.sweep();
        }
        let home = Home { key, owner, records: Run::empty() };
        let group = match self.free_groups.pop() {
            Some(group) => {
                self.homes[group as usize] = home;
                group
            }
            None => {
                self.homes.push(home);
                (self.homes.len() - 1) as u32
            }
        };
        let region = self.region_to_fill(owner, key);
        self.region_runs.insert(&mut self.regions[region], part(key), group);
        group as usize
    }

    fn region_to_fill(&mut self, owner: u32, key: u64) -> usize {
        let place = match self.find(owner, key) {
            Ok(place) => return self.directory[place].region as usize,
            Err(place) => place,
        };
        let region = match self.free_regions.pop() {
            Some(region) => region,
            None => {
                self.regions.push(Run::empty());
                (self.regions.len() - 1) as u32
            }
        };
        self.directory[place] = Place { key: region_key(key), owner, region };
        // At most 5/8 full: with linear probing a miss then looks at four places on average.
        if (self.regions.len() - self.free_regions.len()) * 8 >= self.directory.len() * 5 {
            let places: Vec<Place> =
                self.directory.iter().filter(|place| place.owner != 0).copied().collect();
            self.lay(&places, self.directory.len() * 2);
        }
        region as usize
    }

    /// Puts a block in; gives back the one that was live at its address.
    #[inline(always)]
    pub(crate) fn insert(&mut self, block: &Block, hint: Hint) -> Option<Block> {
        let (owner, key) = (owner(block.process, block.heap), key(block.address_avma));
        let group = match self.hinted_group(owner, key, hint) {
            Some(group) => group,
            None => self.add_group(owner, key),
        };
        if self.cut.watches(group) {
            self.put_aside(group, slot(block.address_avma));
        }
        let record = BlockRecord::new(block);
        let records = &mut self.homes[group].records;
        if let Some(number) = self.runs.get(records, slot(block.address_avma)) {
            let old = std::mem::replace(&mut self.records[number as usize], record);
            return Some(old.block(owner, block.address_avma));
        }
        let number = match self.free_records.pop() {
            Some(free) => {
                self.records[free as usize] = record;
                free
            }
            None => {
                self.records.push(record);
                (self.records.len() - 1) as u32
            }
        };
        self.runs.insert(records, slot(block.address_avma), number);
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
        let group = self.hinted_group(owner, key(address), hint)?;
        if self.cut.watches(group) {
            self.put_aside(group, slot(address));
        }
        let record = self.runs.remove(&mut self.homes[group].records, slot(address))?;
        self.free_records.push(record);
        Some(self.records[record as usize].block(owner, address))
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
        let home = &self.homes[group];
        let record = &self.records[self.runs.get(&home.records, slot)? as usize];
        Some(record.block(home.owner, address(home.key, slot)))
    }

    /// Begins a cut; one that is under way is given up.
    pub(crate) fn begin_cut(&mut self) {
        self.cut.begin(self.homes.len());
    }

    /// Gives up a cut.
    pub(crate) fn abandon_cut(&mut self) {
        self.cut = Cut::default();
    }

    /// Whether blocks were put aside that are not taken yet.
    #[inline(always)]
    pub(crate) fn has_put_aside(&self) -> bool {
        !self.cut.put_aside.is_empty()
    }

    /// Shows blocks of the cut that it has not shown: those put aside, and those of the next `group_count` groups. Tells
    /// whether that was all.
    pub(crate) fn cut_slice(&mut self, group_count: usize, mut visit: impl FnMut(&Block)) -> bool {
        self.cut.put_aside.iter().for_each(&mut visit);
        self.cut.put_aside.clear();
        let from = self.cut.from as usize;
        let taken = group_count.min(self.cut.left as usize);
        for number in from..from + taken {
            let home = self.homes[number];
            let changed = self.cut.changed[number];
            for (slot, record) in self.runs.entries(home.records) {
                if changed >> slot & 1 == 0 {
                    visit(&self.records[record as usize].block(home.owner, address(home.key, slot)));
                }
            }
        }
        self.cut.from += taken as u32;
        self.cut.left -= taken as u32;
        let is_done = self.cut.is_done();
        if is_done {
            self.abandon_cut();
        }
        is_done
    }

    /// Gives back groups without blocks and regions without groups.
    #[cold]
    fn sweep(&mut self) {
        let mut kept = Vec::with_capacity(self.regions.len() - self.free_regions.len());
        for place in self.directory.iter().filter(|place| place.owner != 0) {
            let region = &mut self.regions[place.region as usize];
            for part in places(region.taken) {
                let Some(number) = self.region_runs.get(region, part) else { continue };
                let home = &mut self.homes[number as usize];
                if home.records.taken == 0 {
                    home.owner = 0;
                    self.free_groups.push(number);
                    self.region_runs.remove(region, part);
                }
            }
            if region.taken == 0 {
                self.free_regions.push(place.region);
            } else {
                kept.push(*place);
            }
        }
        self.lay(&kept, self.directory.len());
        // The next sweep is as far away as this one's work was large.
        self.sweep_at = SWEPT_MIN.max((self.homes.len() - self.free_groups.len()) * 2);
    }

    /// Makes the directory anew.
    fn lay(&mut self, places: &[Place], capacity: usize) {
        self.directory = vec![NO_PLACE; capacity];
        for place in places {
            if let Err(free) = self.find(place.owner, place.key) {
                self.directory[free] = *place;
            }
        }
    }

    /// All live blocks, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Block> + '_ {
        // By group, not by directory: groups and records lie in the order in which they were first used.
        self.homes.iter().flat_map(|home| self.blocks_of(home))
    }

    fn blocks_of(&self, home: &Home) -> impl Iterator<Item = Block> + '_ {
        let home = *home;
        self.runs.entries(home.records).map(move |(slot, number)| {
            self.records[number as usize].block(home.owner, address(home.key, slot))
        })
    }

    fn blocks_in(&self, region: u32) -> impl Iterator<Item = Block> + '_ {
        let groups = self.region_runs.entries(self.regions[region as usize]);
        groups.flat_map(|(_, group)| self.blocks_of(&self.homes[group as usize]))
    }

    /// All live blocks by process, heap and address.
    pub(crate) fn sorted(&self) -> impl Iterator<Item = Block> + '_ {
        let mut places: Vec<Place> =
            self.directory.iter().filter(|place| place.owner != 0).copied().collect();
        // Where in the address space first, which of sixteen alignments last.
        places.sort_unstable_by_key(|place| (place.owner, place.key));
        let mut next = 0;
        let stretches = std::iter::from_fn(move || {
            let first = *places.get(next)?;
            let is_same = |place: &&Place| place.owner == first.owner && place.key >> 4 == first.key >> 4;
            let stretch = &places[next..next + places[next..].iter().take_while(is_same).count()];
            next += stretch.len();
            // Only blocks of several alignments in one stretch of addresses, which no allocator makes, lie in several regions.
            let mut mixed = Vec::new();
            if stretch.len() > 1 {
                mixed.extend(stretch.iter().flat_map(|place| self.blocks_in(place.region)));
                mixed.sort_unstable_by_key(|block| block.address_avma);
            }
            let plain = (stretch.len() == 1).then(|| self.blocks_in(first.region));
            Some(mixed.into_iter().chain(plain.into_iter().flatten()))
        });
        stretches.flatten()
    }

    /// Takes out the blocks of a process.
    pub(crate) fn remove_process(&mut self, process: ProcessIndex) {
        if self.cut.left > 0 {
            for group in self.cut.from as usize..(self.cut.from + self.cut.left) as usize {
                if is_of(self.homes[group].owner, process) {
                    (0..SLOT_COUNT).for_each(|slot| self.put_aside(group, slot));
                }
            }
        }
        for home in &mut self.homes {
            if is_of(home.owner, process) {
                self.free_records.extend(self.runs.entries(home.records).map(|(_, number)| number));
                self.runs.clear(&mut home.records);
            }
        }
        if self.len() == 0 && self.cut.is_done() {
            *self = Self::new();
        } else {
            self.sweep();
        }
    }
}

#[cfg(test)]
mod tests;
