//! Heaps that a program itself creates (pools, arenas) and reports: their names and blocks. The
//! blocks are all freed when the heap is destroyed.

use std::collections::{HashMap, HashSet};

use heapr_trace::{HeapId, HeapName, ProcessIndex};
use heapr_wire::HEAP_MMAP;

/// Largest number of bytes of a name: four parts of sixteen.
const NAME_BYTES_MAX: usize = 64;
/// Largest number of names per heap number. The names of a program that makes a new one for each
/// arena are not followed further.
const NAMES_MAX: usize = 64;

/// Heap with one number.
#[derive(Debug, Default)]
struct OwnHeap {
    /// Parts of a name whose heap does not exist yet.
    parts: Vec<u8>,
    /// Names of the heap that are in the file already.
    names: Vec<String>,
    blocks: HashSet<u64>,
    /// Blocks by pool, where the heap has pools; `pool_of` has the pool of each block.
    pools: HashMap<u64, HashSet<u64>>,
    pool_of: HashMap<u64, u64>,
}

impl OwnHeap {
    fn remove(&mut self, address_avma: u64) -> Option<u64> {
        self.blocks.remove(&address_avma);
        let pool = self.pool_of.remove(&address_avma)?;
        if let Some(blocks) = self.pools.get_mut(&pool) {
            blocks.remove(&address_avma);
            if blocks.is_empty() {
                self.pools.remove(&pool);
            }
        }
        Some(pool)
    }

    fn add_to(&mut self, pool: u64, address_avma: u64) {
        self.pool_of.insert(address_avma, pool);
        self.pools.entry(pool).or_default().insert(address_avma);
    }
}

/// Heaps of one process, by number.
#[derive(Debug, Default)]
pub(crate) struct OwnHeaps {
    heaps: HashMap<u8, OwnHeap>,
    /// True if blocks of malloc have joined pools.
    has_joined: bool,
}

impl OwnHeaps {
    /// Whether the blocks of a heap must be followed.
    #[inline(always)]
    pub(crate) fn follows(&self, heap: u8) -> bool {
        Self::is_own(heap) || self.has_joined
    }

    /// Moves an existing block to a pool, out of any other.
    pub(crate) fn joined(&mut self, heap: u8, pool_avma: u64, address_avma: u64) {
        self.has_joined = true;
        let own = self.heaps.entry(heap).or_default();
        own.remove(address_avma);
        own.add_to(pool_avma, address_avma);
    }

    /// Dissolves a pool: its blocks belong to no pool afterwards.
    pub(crate) fn dissolved(&mut self, heap: u8, pool_avma: u64) {
        let Some(own) = self.heaps.get_mut(&heap) else { return };
        for block in own.pools.remove(&pool_avma).unwrap_or_default() {
            own.pool_of.remove(&block);
        }
    }

    /// Whether a heap is one that the program itself created.
    #[inline(always)]
    pub(crate) fn is_own(heap: u8) -> bool {
        heap > HEAP_MMAP
    }

    /// Adds a part of a name; parts come in order.
    pub(crate) fn name_part(&mut self, heap: u8, part: u64, bytes: [u8; 16]) {
        let heap = self.heaps.entry(heap).or_default();
        if part == 0 {
            heap.parts.clear();
        }
        if heap.parts.len() < NAME_BYTES_MAX {
            heap.parts.extend(bytes.iter().take_while(|&&byte| byte != 0));
        }
    }

    /// Registers a new heap. Returns its name, if the file does not have it yet. Also returns
    /// blocks of an earlier heap of the number whose end was lost.
    pub(crate) fn created(
        &mut self,
        process: ProcessIndex,
        heap: u8,
        first_ns: u64,
    ) -> (Option<HeapName>, Vec<u64>) {
        let own = self.heaps.entry(heap).or_default();
        let left = std::mem::take(&mut own.blocks).into_iter().collect();
        own.pools.clear();
        own.pool_of.clear();
        let name = String::from_utf8_lossy(&std::mem::take(&mut own.parts)).into_owned();
        if own.names.len() >= NAMES_MAX || own.names.contains(&name) {
            return (None, left);
        }
        own.names.push(name.clone());
        (Some(HeapName { process, heap: HeapId(heap), name, first_ns }), left)
    }

    pub(crate) fn added(&mut self, heap: u8, address_avma: u64) {
        self.heaps.entry(heap).or_default().blocks.insert(address_avma);
    }

    /// Adds a block of a pool.
    pub(crate) fn added_to_pool(&mut self, heap: u8, pool_avma: u64, address_avma: u64) {
        self.added(heap, address_avma);
        self.heaps.entry(heap).or_default().add_to(pool_avma, address_avma);
    }

    pub(crate) fn removed(&mut self, heap: u8, address_avma: u64) {
        if let Some(own) = self.heaps.get_mut(&heap) {
            own.remove(address_avma);
        }
    }

    /// Moves a resized block. It stays in its pool only if it has not moved, or the heap is the
    /// program's own. For malloc's heap the program reports the pool of the new address by itself.
    pub(crate) fn moved(&mut self, heap: u8, old_avma: u64, address_avma: u64) {
        let own = self.heaps.entry(heap).or_default();
        let pool = own.remove(old_avma);
        if address_avma != 0 {
            if Self::is_own(heap) {
                own.blocks.insert(address_avma);
            }
            if Self::is_own(heap) || address_avma == old_avma {
                pool.into_iter().for_each(|pool| own.add_to(pool, address_avma));
            }
        }
    }

    /// Empties a pool. Returns its blocks in order.
    pub(crate) fn cleared(&mut self, heap: u8, pool_avma: u64) -> Vec<u64> {
        let Some(own) = self.heaps.get_mut(&heap) else { return Vec::new() };
        let mut blocks: Vec<u64> = own.pools.remove(&pool_avma).unwrap_or_default().into_iter().collect();
        blocks.sort_unstable();
        for block in &blocks {
            own.blocks.remove(block);
            own.pool_of.remove(block);
        }
        blocks
    }

    /// Destroys a heap. Returns its blocks in order.
    pub(crate) fn destroyed(&mut self, heap: u8) -> Vec<u64> {
        let Some(own) = self.heaps.get_mut(&heap) else { return Vec::new() };
        let blocks = std::mem::take(&mut own.blocks);
        own.pools.clear();
        own.pool_of.clear();
        let mut blocks: Vec<u64> = blocks.into_iter().collect();
        blocks.sort_unstable();
        blocks
    }

    /// Returns the names that a forked child inherits. Its blocks are its parent's, as with any
    /// heap.
    pub(crate) fn for_child(&self, child: ProcessIndex, first_ns: u64) -> (Self, Vec<HeapName>) {
        let mut heaps = Self::default();
        let mut names = Vec::new();
        for (&heap, own) in &self.heaps {
            let known = OwnHeap { names: own.names.clone(), ..OwnHeap::default() };
            heaps.heaps.insert(heap, known);
            let name =
                |name: &String| HeapName { process: child, heap: HeapId(heap), name: name.clone(), first_ns };
            names.extend(own.names.iter().map(name));
        }
        names.sort_by_key(|name| name.heap);
        (heaps, names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_takes_its_blocks_with_it_and_no_others() {
        let mut heaps = OwnHeaps::default();
        for (pool, block) in [(1, 10), (1, 12), (2, 20), (1, 11)] {
            heaps.added_to_pool(240, pool, block);
        }
        heaps.added(240, 30);
        heaps.removed(240, 11);
        // The block moves, and stays in its pool.
        heaps.moved(240, 12, 13);
        assert_eq!(heaps.cleared(240, 1), [10, 13]);
        assert!(heaps.cleared(240, 1).is_empty());
        assert!(heaps.cleared(241, 2).is_empty());
        assert!(!heaps.follows(0));
        for (pool, block) in [(7, 70), (7, 71), (8, 71), (9, 90)] {
            heaps.joined(0, pool, block);
        }
        assert!(heaps.follows(0));
        heaps.dissolved(0, 9);
        // The first stays in its place, the second moves: it belongs to no pool until it joins one
        // again.
        heaps.joined(0, 7, 72);
        heaps.moved(0, 70, 70);
        heaps.moved(0, 72, 73);
        assert_eq!(heaps.cleared(0, 7), [70]);
        assert_eq!(heaps.cleared(0, 8), [71]);
        assert!(heaps.cleared(0, 9).is_empty());
        assert_eq!(heaps.destroyed(240), [20, 30]);
        assert!(heaps.cleared(240, 2).is_empty());
    }
}
