//! The stack tree: hash of a path -> node, shared by the threads of a process.
//!
//! Each node is written once into a node block of the pool, where the recorder reads it; this table only finds its
//! number again. It is open-addressing, insert-only and lock-free: a lookup that hits writes nothing. When it is
//! half full one thread copies it into one of twice the size; the others go on with the old one meanwhile, and a node
//! that they insert there is at worst numbered twice, which the reader of the trace does not mind.
//!
//! **A path is known by its hash**: 64 bits over all its return addresses, grown frame by frame without looking anything up.
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

/// The unknown node, also the root.
pub(crate) const ROOT: u32 = 0;

/// One entry: `hash` is stored last; an entry with a node but no hash yet is passed over.
#[derive(Debug)]
#[repr(C, align(16))]
struct Entry {
    /// Never 0 once it is stored.
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
        let table = memory.cast::<Self>();
        // SAFETY: a fresh mapping of at least one head.
        unsafe { (*table).capacity = capacity as u64 };
        Some(table)
    }
}

/// The empty path's hash.
pub(crate) const ROOT_HASH: u64 = 0;

/// Hash of a path: of the caller's path and the frame's return address. `salt`: modules that have been at the same
/// addresses one after the other are told apart.
#[inline(always)]
pub(crate) fn path_hash(caller: u64, return_address: u64, salt: u64) -> u64 {
    let frame = (return_address & NODE_ADDRESS_MASK) | salt << 56;
    let product = u128::from(caller ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from(frame.wrapping_mul(0xd6e8_feb8_6659_fd93) | 1);
    // Of the folded product each bit depends on all bits of both factors.
    ((product >> 64) as u64 ^ product as u64).wrapping_add(frame).max(1)
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
        let claimed = AGENT.claim_buffer(pool, purpose, &mut waited)?;
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
