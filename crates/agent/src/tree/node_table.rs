//! The table from a path's hash to its node: eight bytes an entry.
//!
//! ```text
//!  63    58 57                      k k-1          0
//! +--------+-------------------------+--------------+
//! | away   | the hash's bits k to 57 | node         |      one of 2^k entries; 0: free
//! +--------+-------------------------+--------------+
//! ```
//!
//! The hash's low k bits name the home index of an entry, and `away` is the distance from there to
//! its actual index. So an entry and its index give 58 bits of the hash, which determine its home
//! in a table of twice the size. Two of a million paths have those bits in common with a
//! probability of two in a million.
//!
//! Open addressing, insert-only, lock-free: an entry is one word, which is either complete or
//! absent. (With the whole hash and 16 bytes an entry, a table of clang's 920,000 nodes took 32 MiB
//! in place of 16. The smaller ones before it doubled that. Such a table requested huge pages,
//! which must be cleared whole. That took 0.12 of the 0.75 s that recording clang added, on a
//! machine whose host takes free memory back.)

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use heapr_ring::pages::page_bytes;
use heapr_ring::sys;

/// Number of entries of the first table: 32 KiB, enough for a small program.
const FIRST_CAPACITY: usize = 4096;
/// Bit position of `away` in an entry.
const AWAY_SHIFT: u32 = 58;
/// Number of entries that are probed for a hash. (With half as many, one or two of a million hashes
/// find no entry when the table is nearly half full. Then the table was doubled. In some runs of
/// clang, whose 920,000 nodes fit, it grew to 32 MiB, at 8,000 page faults.)
const PLACES: u64 = 1 << (64 - AWAY_SHIFT);
/// Mask of the bits of a hash that an entry and its index give.
const HASH_MASK: u64 = (1 << AWAY_SHIFT) - 1;

/// A table's head; the entries follow in the same mapping.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct NodeTable {
    /// Number of entries minus one: the mask of a node, and of a hash's home index.
    mask: u64,
    used: AtomicU32,
}

impl NodeTable {
    #[inline(always)]
    fn entries(&self) -> &[AtomicU64] {
        // SAFETY: `allocate` maps the head and the entries after it, zeroed; tables are never
        // unmapped.
        unsafe {
            let first = core::ptr::from_ref(self).add(1).cast::<AtomicU64>();
            core::slice::from_raw_parts(first, (self.mask as usize).wrapping_add(1))
        }
    }

    fn allocate(capacity: usize) -> Option<&'static Self> {
        let bytes = size_of::<Self>().wrapping_add(capacity.checked_mul(size_of::<AtomicU64>())?);
        // Wiped on fork: the numbers have no meaning in a child, which has its own node blocks.
        let memory = sys::map_anonymous(bytes, true).ok()?;
        if capacity > FIRST_CAPACITY {
            // Reading a page first maps the shared page of zeros; the write that follows faults
            // again and interrupts the other threads' processors. All pages of a table in use are
            // written soon.
            for page in (0..bytes).step_by(page_bytes()) {
                // SAFETY: inside the fresh mapping.
                unsafe { memory.add(page).write_volatile(0) };
            }
        }
        let table = memory.cast::<Self>();
        // SAFETY: a fresh mapping of at least one head, never unmapped.
        unsafe {
            (*table).mask = (capacity as u64).wrapping_sub(1);
            Some(&*table)
        }
    }

    /// Makes a table of twice the size with the same entries, or the first table. Returns `None` if
    /// there is no memory.
    pub(crate) fn larger(smaller: Option<&Self>) -> Option<&'static Self> {
        let capacity = smaller.map_or(FIRST_CAPACITY, |table| table.entries().len().wrapping_mul(2));
        let larger = Self::allocate(capacity)?;
        if let Some(smaller) = smaller {
            smaller.copy_to(larger);
        }
        Some(larger)
    }

    /// Gives back the memory of the entries, once a larger table has them. A thread that still
    /// looks up here finds nothing, and numbers a node anew.
    pub(crate) fn give_back(&self) {
        let bytes = size_of::<Self>().wrapping_add(size_of_val(self.entries()));
        // The first page has the head, which stays valid.
        let page = page_bytes();
        if let Some(bytes) = bytes.next_multiple_of(page).checked_sub(page) {
            let head = core::ptr::from_ref(self).cast_mut().cast::<u8>();
            // SAFETY: the pages after the first one of the mapping that `allocate` made. They hold
            // only entries, which are atomics, and a zero entry is a free one.
            unsafe { sys::give_back(head.wrapping_add(page), bytes) };
        }
    }

    fn copy_to(&self, larger: &Self) {
        for (place, entry) in self.entries().iter().enumerate() {
            // Acquire: as in `find`.
            let entry = entry.load(Acquire);
            if entry != 0 {
                let home = (place as u64).wrapping_sub(entry >> AWAY_SHIFT) & self.mask;
                // A node that finds no free entry is numbered anew at its next lookup.
                larger.insert(entry & HASH_MASK & !self.mask | home, (entry & self.mask) as u32);
            }
        }
    }

    /// True if the table is half full, or the node's number does not fit, so that a larger one
    /// should be made.
    pub(crate) fn is_full_for(&self, node: u32) -> bool {
        u64::from(self.used.load(Relaxed)) * 2 > self.mask || u64::from(node) > self.mask
    }

    /// True if the table may still take one node more although there is no memory for a larger one.
    pub(crate) fn has_room_for(&self, node: u32) -> bool {
        u64::from(self.used.load(Relaxed)) * 8 < self.mask * 7 && u64::from(node) <= self.mask
    }

    /// Returns the address of a hash's home entry.
    #[inline(always)]
    pub(crate) fn home(&self, hash: u64) -> *const AtomicU64 {
        self.entries().as_ptr().wrapping_add((hash & self.mask) as usize)
    }

    /// Returns the node of the path with this hash.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u64) -> Option<u32> {
        let entries = self.entries();
        let wanted = hash & HASH_MASK & !self.mask;
        for away in 0..PLACES {
            // Acquire: pairs with the Release in `insert`; the node of an entry is complete.
            let entry = entries.get((hash.wrapping_add(away) & self.mask) as usize)?.load(Acquire);
            // All bits above the node are equal.
            if entry ^ (wanted | away << AWAY_SHIFT) <= self.mask {
                return if entry == 0 { None } else { Some((entry & self.mask) as u32) };
            }
            if entry == 0 {
                return None;
            }
        }
        None
    }

    /// Enters a node (not 0, and not above the mask). Returns `false` if all entries of its hash
    /// are taken.
    pub(crate) fn insert(&self, hash: u64, node: u32) -> bool {
        let entries = self.entries();
        let wanted = hash & HASH_MASK & !self.mask | u64::from(node) & self.mask;
        for away in 0..PLACES {
            let place = hash.wrapping_add(away) & self.mask;
            let Some(entry) = entries.get(place as usize) else { return false };
            // Release: pairs with the Acquire in `find`.
            if entry.load(Relaxed) == 0
                && entry.compare_exchange(0, wanted | away << AWAY_SHIFT, Release, Relaxed).is_ok()
            {
                self.used.fetch_add(1, Relaxed);
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns numbers without order, each once (SplitMix64).
    fn mixed(number: u64) -> u64 {
        let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Through several sizes each node is found again, and no hash that was not entered is found.
    /// The hashes include some that differ in their high bits only.
    #[test]
    fn nodes_are_found_again_in_tables_of_all_sizes() {
        let mut table = NodeTable::larger(None).unwrap();
        let hash_of = |node: u32| {
            let mixed = mixed(u64::from(node));
            // Some with the same home, and some at the end of the table.
            match node % 16 {
                0 => mixed << 40 | 77,
                1 => mixed | 0xf_ffff,
                _ => mixed,
            }
        };
        // (Crowds with one home that grow for ever have no room in any table.)
        let is_crowd = |node: u32| node % 16 < 2 && node > 16 * 12;
        for (used, node) in (1..300_000).filter(|&node| !is_crowd(node)).enumerate() {
            if table.is_full_for(node) {
                table = NodeTable::larger(Some(table)).unwrap();
                assert_eq!(table.used.load(Relaxed) as usize, used);
            }
            let hash = hash_of(node);
            assert_eq!(table.find(hash), None);
            if !table.insert(hash, node) {
                // With random hashes this practically never happens.
                table = NodeTable::larger(Some(table)).unwrap();
                assert!(table.insert(hash, node), "{node}");
            }
            assert_eq!(table.find(hash), Some(node));
        }
        for node in (1..300_000).filter(|&node| !is_crowd(node)) {
            assert_eq!(table.find(hash_of(node)), Some(node), "{node}");
        }
        for number in 300_000..600_000_u32 {
            assert_eq!(table.find(mixed(u64::from(number) | 1 << 40)), None);
        }
    }

    /// A table whose pages are given back reads as empty, and takes what a late thread enters.
    #[test]
    fn a_table_whose_pages_are_given_back_has_no_nodes() {
        let table = NodeTable::larger(None).unwrap();
        // Beyond the first page, which stays.
        let hash_of = |node: u32| u64::from(node) << 32 | u64::from(node + 1000);
        for node in 1..=1000 {
            assert!(table.insert(hash_of(node), node));
        }
        let larger = NodeTable::larger(Some(table)).unwrap();
        table.give_back();
        for node in 1..=1000 {
            assert_eq!((table.find(hash_of(node)), larger.find(hash_of(node))), (None, Some(node)));
        }
        assert!(table.insert(hash_of(7), 7) && table.find(hash_of(7)) == Some(7));
        assert_eq!((table.mask, larger.mask), (4095, 8191));
    }

    #[test]
    fn a_crowd_at_one_place_is_refused_when_its_places_are_taken() {
        let table = NodeTable::larger(None).unwrap();
        for node in 1..=PLACES as u32 {
            assert!(table.insert(u64::from(node) << 32 | 4090, node));
        }
        assert!(!table.insert(99 << 32 | 4090, 99));
        assert_eq!(table.find(99 << 32 | 4090), None);
        for node in 1..=PLACES as u32 {
            assert_eq!(table.find(u64::from(node) << 32 | 4090), Some(node));
        }
    }
}
