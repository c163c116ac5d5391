//! The stack tree: (caller's node, return address) -> node, shared by the threads of a process.
//!
//! Each node is written once into a node block of the pool, where the recorder reads it; this table only finds its
//! number again. It is open-addressing, insert-only and lock-free: a lookup that hits writes nothing. When it is
//! half full one thread copies it into one of twice the size; the others go on with the old one meanwhile, and a node
//! that they insert there is at worst numbered twice, which the reader of the trace does not mind.
//!
//! **Placement.** An entry's place comes from a hash over the whole path to the root, which grows frame by frame without
//! looking anything up. So the places of all new frames of a stack are known before the first is looked up, and are
//! fetched into the cache together; were the place to depend on the parent's number, each lookup would have to wait
//! for the one before it (half of the agent's time on clang, where the table has 830,000 nodes).
//!
//! Memory: 16 bytes an entry, 32 to 64 bytes a node in the worst case, never freed (a lookup may be under way in an old
//! table; all old ones together are as large as the current).

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use heapr_ring::{Pool, sys, writer};
use heapr_wire::NODE_ADDRESS_MASK;

use crate::process::{AGENT, ForkLocal, NODE_BLOCKS_MAX};

/// Entries of the first table: 64 KiB of memory, enough for a small program.
const FIRST_CAPACITY: usize = 4096;

/// Tables of this size ask for huge pages: random lookups in 32 MiB of small pages miss the TLB nearly every time.
const HUGE_FROM_BYTES: usize = 4 << 20;

/// The unknown node, also the root.
pub(crate) const ROOT: u32 = 0;

/// One entry: `key` is stored last; an entry with `links` but no `key` yet is passed over.
#[derive(Debug)]
#[repr(C, align(16))]
struct Entry {
    /// Salt in the upper 8 bits, return address below.
    key: AtomicU64,
    /// Parent (high 32 bits), node (low 32 bits).
    links: AtomicU64,
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

/// Hash of a path: of the caller's path and the frame's return address. The empty path's is 0.
#[inline(always)]
pub(crate) fn path_hash(caller: u32, return_address: u64) -> u32 {
    let mixed = (return_address ^ u64::from(caller).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as u32
}

/// Fetches the place of a path into the cache.
#[inline(always)]
pub(crate) fn prefetch(hash: u32) {
    let Some(local) = AGENT.fork_local() else { return };
    // SAFETY: null, or a table published below, which is never unmapped.
    if let Some(table) = unsafe { local.tree_table.load(Acquire).as_ref() } {
        let entries = table.entries();
        if let Some(entry) = entries.get(hash as usize & entries.len().wrapping_sub(1)) {
            crate::x86_64::prefetch(core::ptr::from_ref(entry).cast());
        }
    }
}

/// The node for a frame that returns to `return_address` and whose caller is `parent`; `hash`: of the path to it.
/// [`ROOT`] if it is new and cannot be written (counted).
#[inline]
pub(crate) fn intern(parent: u32, return_address: u64, salt: u64, hash: u32) -> u32 {
    let Some(local) = AGENT.fork_local() else { return ROOT };
    let key = (return_address & NODE_ADDRESS_MASK) | salt << 56;
    // SAFETY: null, or a table published below, which is never unmapped.
    if let Some(table) = unsafe { local.tree_table.load(Acquire).as_ref() } {
        let entries = table.entries();
        let mask = entries.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        for _ in 0..entries.len() {
            let Some(entry) = entries.get(place) else { break };
            // Acquire: pairs with the Release in `insert`; the links of an entry with a key are complete.
            let found = entry.key.load(Acquire);
            let links = entry.links.load(Relaxed);
            if found == key && (links >> 32) as u32 == parent {
                return links as u32;
            }
            if found == 0 && links == 0 {
                break;
            }
            place = place.wrapping_add(1) & mask;
        }
    }
    add(local, parent, return_address, key, hash)
}

#[cold]
#[inline(never)]
fn add(local: &ForkLocal, parent: u32, return_address: u64, key: u64, hash: u32) -> u32 {
    let Some(pool) = AGENT.pool() else { return ROOT };
    let Some(node) = write_node(local, pool, parent, return_address) else {
        AGENT.count(|slot| &slot.stacks_lost);
        return ROOT;
    };
    if let Some(table) = table_with_room(local) {
        insert(table, key, parent, node, hash);
    }
    node
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
                copy(table, larger, local.node_count.load(Relaxed));
            }
            // Release: pairs with the Acquire in `intern`.
            local.tree_table.store(core::ptr::from_ref(larger).cast_mut(), Release);
            Some(larger)
        }
        // No memory: the old table is used until it is nearly full; then nodes are numbered anew each time.
        None => table.filter(|table| u64::from(table.used.load(Relaxed)) * 8 < table.capacity * 7),
    };
    local.tree_growing.store(0, Release);
    answer
}

/// A node while a table is copied.
#[repr(C)]
struct Copied {
    key: u64,
    parent: u32,
    hash: u32,
}

/// Copies a table into a larger one. The hashes are made anew from the root down: a caller's number is always lower than
/// its callee's, so one pass in order of the numbers does it. Without memory for that pass the larger table starts
/// empty, and what is in use is numbered a second time.
fn copy(table: &Table, larger: &Table, node_count: u32) {
    let bytes = (node_count as usize).wrapping_mul(size_of::<Copied>());
    let Ok(memory) = sys::map_anonymous(bytes, false) else { return };
    // SAFETY: a fresh zeroed mapping of that size, unmapped at the end of this function; zero is a valid `Copied`.
    let nodes = unsafe { core::slice::from_raw_parts_mut(memory.cast::<Copied>(), node_count as usize) };
    for entry in table.entries() {
        let (key, links) = (entry.key.load(Acquire), entry.links.load(Relaxed));
        if let Some(node) = nodes.get_mut(links as u32 as usize)
            && key != 0
        {
            *node = Copied { key, parent: (links >> 32) as u32, hash: 0 };
        }
    }
    for number in 1..nodes.len() {
        let Some(&Copied { key, parent, .. }) = nodes.get(number) else { break };
        if key == 0 {
            continue;
        }
        let caller = nodes.get(parent as usize).map_or(0, |caller| caller.hash);
        let hash = path_hash(caller, key & NODE_ADDRESS_MASK);
        if let Some(node) = nodes.get_mut(number) {
            node.hash = hash;
        }
        insert(larger, key, parent, number as u32, hash);
    }
    // SAFETY: `nodes` is not used after this.
    unsafe { sys::unmap(memory, bytes) };
}

fn insert(table: &Table, key: u64, parent: u32, node: u32, hash: u32) {
    let entries = table.entries();
    let mask = entries.len().wrapping_sub(1);
    let mut place = hash as usize & mask;
    let links = u64::from(parent) << 32 | u64::from(node);
    for _ in 0..entries.len() {
        let Some(entry) = entries.get(place) else { return };
        if entry.links.load(Relaxed) == 0 && entry.links.compare_exchange(0, links, Relaxed, Relaxed).is_ok()
        {
            // Release: pairs with the Acquire in `intern`.
            entry.key.store(key, Release);
            table.used.fetch_add(1, Relaxed);
            return;
        }
        place = place.wrapping_add(1) & mask;
    }
}
