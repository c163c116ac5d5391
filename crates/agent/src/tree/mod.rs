//! The stack tree: hash of a path -> node, shared by the threads of a process.
//!
//! Each node is written once into a node block of the pool, where the recorder reads it. A table
//! ([`crate::tree::node_table`]) only finds its number again, and a lookup that hits writes
//! nothing. When the table is half full, one thread copies it into one of twice the size. The
//! others use the old one in the meantime. A node that they insert there is at worst numbered
//! twice, which the reader of the trace accepts.
//!
//! **A path is identified by its hash**: 64 bits over all its return addresses. The hash is the sum
//! of all frames' parts, each of which depends on the frame's depth. A hash needs no lookup, the
//! frames' parts are independent, and a stack that changes in the middle keeps the parts of all
//! other frames. So only the innermost frame of a stack is looked up; the nodes between are needed
//! only when a new one is made below them. (A lookup frame by frame, each by its parent's number,
//! took half of the agent's time on clang. There the table has 920,000 nodes and each lookup misses
//! the caches.) Two of a million paths have the same hash with a probability of 3 in 10^8. With a
//! probability of one in 10^6 they have the same bits of it that a table stores.
//!
//! Memory: 8 bytes an entry, 16 to 32 bytes a node. A lookup may be under way in an old table, so
//! that table stays mapped, and only its pages are given back.

pub(crate) mod node_table;

use core::sync::atomic::Ordering::*;

use heapr_ring::{Pool, writer};
use heapr_wire::{NODE_ADDRESS_MASK, NODE_BITS};

use crate::arch::prefetch;
use crate::state::{AGENT, ForkLocal, NODE_BLOCKS_MAX};
use crate::tree::node_table::NodeTable;

/// Number of the unknown node, which is also the root.
pub(crate) const ROOT: u32 = 0;

/// Hash of the empty path.
pub(crate) const ROOT_HASH: u64 = 0;

/// Returns the hash of a path, from the hash and the depth of the caller's path and the frame's
/// return address.
#[inline(always)]
pub(crate) fn path_hash(caller: u64, caller_depth: usize, return_address: u64, salt: u64) -> u64 {
    caller.wrapping_add(part_hash(caller_depth, return_address, salt))
}

/// Returns a frame's part of the hash of each path that contains it. `salt` distinguishes modules
/// that were loaded at the same addresses one after the other.
#[inline(always)]
pub(crate) fn part_hash(caller_depth: usize, return_address: u64, salt: u64) -> u64 {
    let frame = (return_address & NODE_ADDRESS_MASK) | salt << 56;
    // Addresses of one module differ in few bits: they are spread before the multiplication by the
    // depth's factor.
    let spread = frame.wrapping_add(1).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let spread = spread ^ spread >> 32;
    let place = (caller_depth as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(spread) * u128::from(place);
    // Each bit of the folded product depends on all bits of both factors.
    (product >> 64) as u64 ^ product as u64
}

/// Returns the current table, if there is one yet.
#[inline(always)]
fn table(local: &ForkLocal) -> Option<&'static NodeTable> {
    // SAFETY: null, or a table published below, which is never unmapped.
    unsafe { local.tree_table.load(Acquire).cast::<NodeTable>().as_ref() }
}

/// Prefetches the table entry of the path with this hash, because its node is about to be looked
/// up.
#[inline(always)]
pub(crate) fn prefetch_node(hash: u64) {
    if let Some(table) = AGENT.fork_local().and_then(table) {
        prefetch(table.home(hash).addr());
    }
}

/// Returns the node of a path, if it has one.
#[inline(always)]
pub(crate) fn find(hash: u64) -> Option<u32> {
    if hash == ROOT_HASH {
        return Some(ROOT);
    }
    table(AGENT.fork_local()?)?.find(hash)
}

/// Makes the node of a path that has no node yet, for a frame that returns to `return_address` and
/// whose caller is `parent`. Returns `None` if it cannot be written (counted).
#[cold]
#[inline(never)]
pub(crate) fn add(parent: u32, return_address: u64, hash: u64) -> Option<u32> {
    let (local, pool) = (AGENT.fork_local()?, AGENT.pool()?);
    let Some(node) = write_node(local, pool, parent, return_address) else {
        AGENT.count(|slot| &slot.stacks_lost);
        return None;
    };
    if !table_with_room(local, node).is_some_and(|table| table.insert(hash, node)) {
        // All locations of this hash are taken, which is not so in a larger table.
        if let Some(larger) = grow(local, |_| true) {
            larger.insert(hash, node);
        }
    }
    Some(node)
}

/// Writes a node into its block. The recorder may read it as soon as an event names it.
fn write_node(local: &ForkLocal, pool: &'static Pool, parent: u32, return_address: u64) -> Option<u32> {
    let per_block = pool.nodes_per_block() as u32;
    // Registers a forked child, whose counter starts anew.
    let process = AGENT.process()?;
    let number = local.node_count.fetch_add(1, Relaxed);
    let block = number.checked_div(per_block)?;
    if block as usize >= NODE_BLOCKS_MAX || number >> NODE_BITS != 0 {
        local.node_count.store(number, Relaxed);
        return None;
    }
    let place = local.node_blocks.get(block as usize)?;
    let mut buffer = place.load(Acquire);
    if buffer == 0 {
        let mut waited = 0;
        let purpose = writer::BufferUse::Nodes { process, block };
        let Some(claimed) = AGENT.claim_buffer(pool, purpose, &mut waited) else {
            // The recorder would not accept numbers that run ahead of the blocks.
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

fn table_with_room(local: &ForkLocal, node: u32) -> Option<&'static NodeTable> {
    let known = table(local);
    if known.is_some_and(|table| !table.is_full_for(node)) {
        return known;
    }
    let grown = grow(local, |table| table.is_none_or(|table| table.is_full_for(node)));
    // No memory, or another thread is growing the table. The old table is used until it is nearly
    // full; after that, nodes are numbered anew each time.
    grown.or(known).filter(|table| table.has_room_for(node))
}

/// Makes a larger table, if it is still wanted once no other thread can be making one, and returns
/// the table that is current then. Returns `None` if another thread is making one, or there is no
/// memory.
#[cold]
#[inline(never)]
fn grow(local: &ForkLocal, is_wanted: impl Fn(Option<&NodeTable>) -> bool) -> Option<&'static NodeTable> {
    if local.tree_growing.swap(1, Acquire) != 0 {
        return None;
    }
    let known = table(local);
    let answer = if is_wanted(known) { NodeTable::larger(known) } else { known };
    if let Some(table) = answer {
        // Release: pairs with the Acquire in `table`.
        local.tree_table.store(core::ptr::from_ref(table).cast_mut().cast(), Release);
        if let Some(known) = known.filter(|known| !core::ptr::eq(*known, table)) {
            known.give_back();
        }
    }
    local.tree_growing.store(0, Release);
    answer
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn hash_of(path: &[u64]) -> u64 {
        path.iter().enumerate().fold(ROOT_HASH, |hash, (depth, &address)| path_hash(hash, depth, address, 0))
    }

    /// Builds paths that are alike in the ways that stacks are: frames that change places,
    /// recursion of any depth, call sites a few bytes apart. No two have the same hash, and their
    /// low and high bits spread.
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
        // Recursion through one, two and three call sites, with one other frame at some depth.
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
