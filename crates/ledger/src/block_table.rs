//! The live blocks, by process, heap and address.
//!
//! An open-addressing table of 40-byte entries, at most 5/8 full and half as full when it has just grown: 64 to 128 bytes a
//! live block. (At 7/8 a new block looked at 32 places on average, and that was half of the recorder's time on a
//! program with a million live blocks; at 5/8 it is 4.) Removal shifts the entries behind back, so that there are no tombstones and a table in which
//! blocks come and go for hours stays as fast as a new one.

use heapr_trace::{Block, HeapId, ProcessIndex, StackIndex, ThreadIndex};

/// Smallest table.
const FIRST_CAPACITY: usize = 1 << 10;

/// A block as it lies in the table: 40 bytes.
#[derive(Debug, Clone, Copy)]
struct Entry {
    address: u64,
    size_bytes: u64,
    alloc_ns: u64,
    stack: u32,
    thread: u32,
    /// Process + 1 (24 bits), heap (7 bits), from a realloc (1 bit); 0: empty.
    owner: u32,
}

const EMPTY: Entry = Entry { address: 0, size_bytes: 0, alloc_ns: 0, stack: 0, thread: 0, owner: 0 };

impl Entry {
    fn new(block: &Block) -> Self {
        Self {
            address: block.address_avma,
            size_bytes: block.size_bytes,
            alloc_ns: block.alloc_ns,
            stack: block.stack.0,
            thread: block.thread.0,
            owner: owner(block.process, block.heap) | u32::from(block.is_realloc),
        }
    }

    fn block(&self) -> Block {
        Block {
            process: ProcessIndex((self.owner >> 8).wrapping_sub(1)),
            heap: HeapId((self.owner >> 1 & 0x7f) as u8),
            address_avma: self.address,
            size_bytes: self.size_bytes,
            stack: StackIndex(self.stack),
            thread: ThreadIndex(self.thread),
            alloc_ns: self.alloc_ns,
            is_realloc: self.owner & 1 != 0,
        }
    }
}

fn owner(process: ProcessIndex, heap: HeapId) -> u32 {
    (process.0.wrapping_add(1)) << 8 | u32::from(heap.0 & 0x7f) << 1
}

/// Live blocks.
#[derive(Debug)]
pub(crate) struct BlockTable {
    entries: Vec<Entry>,
    count: usize,
}

impl BlockTable {
    pub(crate) fn new() -> Self {
        Self { entries: vec![EMPTY; FIRST_CAPACITY], count: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    #[inline(always)]
    fn home(&self, owner: u32, address: u64) -> usize {
        // Blocks are 16-byte aligned; folding the product's halves makes its low bits depend on the whole address.
        let key = (address >> 4) ^ u64::from(owner & !1).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let product = u128::from(key) * 0x9e37_79b9_7f4a_7c15;
        ((product >> 64) as u64 ^ product as u64) as usize & (self.entries.len() - 1)
    }

    #[inline(always)]
    fn find(&self, owner: u32, address: u64) -> Result<usize, usize> {
        let mask = self.entries.len() - 1;
        let mut place = self.home(owner, address);
        loop {
            let entry = &self.entries[place];
            if entry.owner == 0 {
                return Err(place);
            }
            if entry.address == address && entry.owner & !1 == owner {
                return Ok(place);
            }
            place = (place + 1) & mask;
        }
    }

    /// Puts a block in; gives back the one that was live at its address.
    #[inline]
    pub(crate) fn insert(&mut self, block: &Block) -> Option<Block> {
        if self.count * 8 >= self.entries.len() * 5 {
            self.grow();
        }
        let entry = Entry::new(block);
        match self.find(entry.owner & !1, entry.address) {
            Ok(place) => {
                let old = self.entries[place].block();
                self.entries[place] = entry;
                Some(old)
            }
            Err(place) => {
                self.entries[place] = entry;
                self.count += 1;
                None
            }
        }
    }

    /// Takes a block out.
    #[inline]
    pub(crate) fn remove(&mut self, process: ProcessIndex, heap: HeapId, address: u64) -> Option<Block> {
        let mut hole = self.find(owner(process, heap), address).ok()?;
        let block = self.entries[hole].block();
        let mask = self.entries.len() - 1;
        let mut next = hole;
        loop {
            next = (next + 1) & mask;
            let entry = self.entries[next];
            if entry.owner == 0 {
                break;
            }
            // An entry may move into the hole unless its home lies behind it.
            let home = self.home(entry.owner & !1, entry.address);
            if (next.wrapping_sub(home) & mask) >= (next.wrapping_sub(hole) & mask) {
                self.entries[hole] = entry;
                hole = next;
            }
        }
        self.entries[hole] = EMPTY;
        self.count -= 1;
        Some(block)
    }

    #[cold]
    fn grow(&mut self) {
        let capacity = self.entries.len() * 2;
        let old = std::mem::replace(&mut self.entries, vec![EMPTY; capacity]);
        for entry in old.into_iter().filter(|entry| entry.owner != 0) {
            if let Err(place) = self.find(entry.owner & !1, entry.address) {
                self.entries[place] = entry;
            }
        }
    }

    /// All live blocks, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Block> + '_ {
        self.entries.iter().filter(|entry| entry.owner != 0).map(Entry::block)
    }

    /// Takes out the blocks of a process.
    pub(crate) fn remove_process(&mut self, process: ProcessIndex) {
        let gone = process.0.wrapping_add(1);
        let old = std::mem::replace(&mut self.entries, vec![EMPTY; FIRST_CAPACITY]);
        self.count = 0;
        for entry in old.into_iter().filter(|entry| entry.owner != 0 && entry.owner >> 8 != gone) {
            self.insert(&entry.block());
        }
    }
}
