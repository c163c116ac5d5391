//! The stack tree: hash of a path -> node, shared by the threads of a process.
//!
//! Each node is written once into a node block of the pool, where the recorder reads it; this table only finds its
//! number again. It is open-addressing, insert-only and lock-free: a lookup that hits writes nothing. When it is
//! half full one thread copies it into one of twice the size; the others go on with the old one meanwhile, and a node
//! that they insert there is at worst numbered twice, which the reader of the trace does not mind.
//!
//! **A path is known by its hash**: 64 bits over all its return addresses, the sum of what each frame gives at its place. Nothing is looked
//! up for it, no frame's part waits for another's, and a stack that changes in the middle keeps the parts of all other frames.
//! So only the innermost frame of a stack is looked up; the nodes between are needed only when a new one is made below
//! them. (Looking up frame by frame, each by its parent's number, was half of the agent's time on clang, where the
//! table has 920,000 nodes and each lookup misses the caches.) Two of a million paths have the same hash with a
//! probability of 3 in 10^8.
//!
//! Memory: 16 bytes an entry, 32 to 64 bytes a node in the worst case, never freed (a lookup may be under way in an old
//! table; all old ones together are as large as the current).

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use heapr_ring::{Pool, sys, writer};
use heapr_wire::NODE_ADDRESS_MASK;

use crate::process::{AGENT, ForkLocal, NODE_BLOCKS_MAX};
use crate::x86_64::prefetch;

/// Entries of the first table: 64 KiB of memory, enough for a small program.
const FIRST_CAPACITY: usize = 4096;

/// Tables of this size ask for huge pages: random lookups in 32 MiB of small pages miss the TLB nearly every time.
const HUGE_FROM_BYTES: usize = 4 << 20;

/// Smallest page of the processor.
const PAGE_BYTES: usize = 4096;

/// The unknown node, also the root.
pub(crate) const ROOT: u32 = 0;

/// One entry: `hash` is stored last; an entry with a node but no hash yet is passed over.
#[derive(Debug)]
#[repr(C, align(16))]
struct Entry {
    /// 0: not stored yet. (That a path has this hash is as likely as that two have the same.)
    hash: AtomicU64,
    node: AtomicU32,
}

/// A table's head; the entries follow in the same mapping.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Table {
    capacity: u64,
    used: AtomicU32,
}

impl Table {
    #[inline(always)]
    fn entries(&self) -> &[Entry] {
        // SAFETY: `allocate` maps the head and `capacity` entries behind it, zeroed; tables are never unmapped.
        unsafe {
            let first = core::ptr::from_ref(self).add(1).cast::<Entry>();
            core::slice::from_raw_parts(first, self.capacity as usize)
        }
    }

    fn allocate(capacity: usize) -> Option<*mut Self> {
        let bytes = size_of::<Self>().wrapping_add(capacity.checked_mul(size_of::<Entry>())?);
        // Wiped on fork: the numbers mean nothing in a child, which has its own node blocks.
        let memory = sys::map_anonymous(bytes, true).ok()?;
        if bytes >= HUGE_FROM_BYTES {
            sys::advise_huge(memory, bytes);
        }
        if capacity > FIRST_CAPACITY {
            // A page that is read first is the shared page of zeros, and the write that follows faults again and interrupts the other
            // threads' processors. All pages of a table in use are written soon.
            for page in (0..bytes).step_by(PAGE_BYTES) {
                // SAFETY: inside the fresh mapping.
                unsafe { memory.add(page).write_volatile(0) };
            }
        }
        let table = memory.cast::<Self>();
        // SAFETY: a fresh mapping of at least one head.
        unsafe { (*table).capacity = capacity as u64 };
        Some(table)
    }
}

/// The empty path's hash.
pub(crate) const ROOT_HASH: u64 = 0;

/// Hash of a path: of the caller's path, how many frames that has, and the frame's return address. `salt`: modules that have been at
/// the same addresses one after the other are told apart.
#[inline(always)]
pub(crate) fn path_hash(caller: u64, caller_depth: usize, return_address: u64, salt: u64) -> u64 {
    let frame = (return_address & NODE_ADDRESS_MASK) | salt << 56;
    // Addresses of one module differ in few bits: they are spread before they meet the place's factor.
    let spread = frame.wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let spread = spread ^ spread >> 32;
    let place = (caller_depth as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(spread) * u128::from(place);
    // Of the folded product each bit depends on all bits of both factors.
    caller.wrapping_add((product >> 64) as u64 ^ product as u64)
}

/// A node of the path with this hash is looked up soon: its entry is pulled into the caches.
#[inline(always)]
pub(crate) fn soon(hash: u64) {
    let Some(local) = AGENT.fork_local() else { return };
    // SAFETY: null, or a table published below, which is never unmapped.
    let Some(table) = (unsafe { local.tree_table.load(Acquire).as_ref() }) else { return };
    let entries = table.entries();
    if let Some(entry) = entries.get(hash as usize & entries.len().wrapping_sub(1)) {
        prefetch(core::ptr::from_ref(entry).cast());
    }
}

/// The node of a path, if it has one.
#[inline(always)]
pub(crate) fn find(hash: u64) -> Option<u32> {
    if hash == ROOT_HASH {
        return Some(ROOT);
    }
    let local = AGENT.fork_local()?;
    // SAFETY: null, or a table published below, which is never unmapped.
    let table = unsafe { local.tree_table.load(Acquire).as_ref() }?;
    let entries = table.entries();
    let mask = entries.len().wrapping_sub(1);
    let mut place = hash as usize & mask;
    for _ in 0..entries.len() {
        let entry = entries.get(place)?;
        // Acquire: pairs with the Release in `insert`; the node of an entry with a hash is complete.
        let found = entry.hash.load(Acquire);
        if found == hash {
            return Some(entry.node.load(Relaxed));
        }
        if found == 0 && entry.node.load(Relaxed) == 0 {
            return None;
        }
        place = place.wrapping_add(1) & mask;
    }
    None
}

/// Makes the node of a path that has none, for a frame that returns to `return_address` and whose caller is `parent`.
/// `None`: it cannot be written (counted).
#[cold]
#[inline(never)]
pub(crate) fn add(parent: u32, return_address: u64, hash: u64) -> Option<u32> {
    let (local, pool) = (AGENT.fork_local()?, AGENT.pool()?);
    let Some(node) = write_node(local, pool, parent, return_address) else {
        AGENT.count(|slot| &slot.stacks_lost);
        return None;
    };
    if let Some(table) = table_with_room(local) {
        insert(table, hash, node);
    }
    Some(node)
}

/// Writes a node into its block. The recorder may read it from the moment that an event names it.
fn write_node(local: &ForkLocal, pool: &'static Pool, parent: u32, return_address: u64) -> Option<u32> {
    let per_block = pool.nodes_per_block() as u32;
    // Registers a forked child, whose counter starts anew.
    let (process, _) = AGENT.process()?;
    let number = local.node_count.fetch_add(1, Relaxed);
    let block = number.checked_div(per_block)?;
    if block as usize >= NODE_BLOCKS_MAX {
        local.node_count.store(number, Relaxed);
        return None;
    }
    let place = local.node_blocks.get(block as usize)?;
    let mut buffer = place.load(Acquire);
    if buffer == 0 {
        let mut waited = 0;
        let purpose = writer::BufferUse::Nodes { process, block };
        let claimed =
            if writer::may_hold_nodes(pool) { AGENT.claim_buffer(pool, purpose, &mut waited) } else { None };
        let Some(claimed) = claimed else {
            // Numbers that run ahead of the blocks would be believed by nobody.
            let _ = local.node_count.compare_exchange(number.wrapping_add(1), number, Relaxed, Relaxed);
            return None;
        };
        match place.compare_exchange(0, claimed.wrapping_add(1), AcqRel, Acquire) {
            Ok(_) => buffer = claimed.wrapping_add(1),
            Err(other) => {
                writer::unclaim_buffer(pool, claimed);
                buffer = other;
            }
        }
    }
    let nodes = pool.buffer_nodes(buffer.wrapping_sub(1))?;
    let node = nodes.get(number.checked_rem(per_block)? as usize)?;
    node.parent.store(parent, Relaxed);
    // Release: pairs with the recorder's Acquire; a node with an address is complete.
    node.return_address.store(return_address & NODE_ADDRESS_MASK, Release);
    Some(number)
}

fn table_with_room(local: &ForkLocal) -> Option<&'static Table> {
    // SAFETY: null, or a table published below, which is never unmapped.
    let table: Option<&'static Table> = unsafe { local.tree_table.load(Acquire).as_ref() };
    let is_full = table.is_none_or(|table| u64::from(table.used.load(Relaxed)) * 2 >= table.capacity);
    if !is_full || local.tree_growing.swap(1, Acquire) != 0 {
        return table;
    }
    // Looked at again now that no other thread can be growing it.
    // SAFETY: as above.
    let table: Option<&'static Table> = unsafe { local.tree_table.load(Acquire).as_ref() };
    let capacity = table.map_or(FIRST_CAPACITY, |table| (table.capacity as usize).wrapping_mul(2));
    let is_still_full = table.is_none_or(|table| u64::from(table.used.load(Relaxed)) * 2 >= table.capacity);
    let larger = if is_still_full { Table::allocate(capacity) } else { None };
    // SAFETY: a fresh table, mapped for good.
    let answer = match unsafe { larger.map(|larger| &*larger) } {
        Some(larger) => {
            if let Some(table) = table {
                for entry in table.entries() {
                    // Acquire: as in `find`.
                    let hash = entry.hash.load(Acquire);
                    if hash != 0 {
                        insert(larger, hash, entry.node.load(Relaxed));
                    }
                }
            }
            // Release: pairs with the Acquire in `find`.
            local.tree_table.store(core::ptr::from_ref(larger).cast_mut(), Release);
            Some(larger)
        }
        // No memory: the old table is used until it is nearly full; then nodes are numbered anew each time.
        None => table.filter(|table| u64::from(table.used.load(Relaxed)) * 8 < table.capacity * 7),
    };
    local.tree_growing.store(0, Release);
    answer
}

fn insert(table: &Table, hash: u64, node: u32) {
    let entries = table.entries();
    let mask = entries.len().wrapping_sub(1);
    let mut place = hash as usize & mask;
    for _ in 0..entries.len() {
        let Some(entry) = entries.get(place) else { return };
        if entry.node.load(Relaxed) == 0 && entry.node.compare_exchange(0, node, Relaxed, Relaxed).is_ok() {
            // Release: pairs with the Acquire in `find`.
            entry.hash.store(hash, Release);
            table.used.fetch_add(1, Relaxed);
            return;
        }
        place = place.wrapping_add(1) & mask;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn hash_of(path: &[u64]) -> u64 {
        path.iter().enumerate().fold(ROOT_HASH, |hash, (depth, &address)| path_hash(hash, depth, address, 0))
    }

    /// Paths that are alike in the ways in which stacks are: frames that change places, recursion of any depth, call sites a few
    /// bytes apart. No two have the same hash, and their low and high bits spread.
    #[test]
    fn paths_that_are_alike_have_different_hashes() {
        let sites: Vec<u64> = (0..12).map(|number| 0x7f12_3456_7000 + number * 5).collect();
        let mut paths = vec![Vec::new()];
        // All paths of up to five frames out of twelve call sites.
        let mut first = 0;
        for _ in 0..5 {
            let end = paths.len();
            for number in first..end {
                for &site in &sites {
                    let longer = [&paths[number][..], &[site]].concat();
                    paths.push(longer);
                }
            }
            first = end;
        }
        // Recursion through one, two and three of them, and one other frame anywhere in it.
        for depth in 6..400 {
            for period in 1..=3 {
                let mut path: Vec<u64> = (0..depth).map(|frame| sites[frame % period]).collect();
                paths.push(path.clone());
                path[depth / 3] = sites[7];
                paths.push(path.clone());
                path.swap(depth / 3, depth / 2);
                paths.push(path);
            }
        }
        paths.sort();
        paths.dedup();
        let mut known = HashMap::new();
        let mut low = vec![0_u32; 1 << 10];
        let mut high = vec![0_u32; 1 << 10];
        for path in &paths {
            let hash = hash_of(path);
            assert_eq!(known.insert(hash, path), None, "{path:x?}");
            low[(hash % (1 << 10)) as usize] += 1;
            high[(hash >> 32) as usize % (1 << 10)] += 1;
        }
        let mean = (paths.len() >> 10) as u32;
        for counts in [low, high] {
            let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
            // Five standard deviations.
            let spread = 5 * mean.isqrt();
            assert!(least + spread > mean && most < mean + spread, "{least} to {most}, {mean} on average");
        }
    }

    #[test]
    fn modules_at_the_same_addresses_are_told_apart() {
        assert_ne!(path_hash(1, 3, 0x40_1000, 0), path_hash(1, 3, 0x40_1000, 1));
    }
}
