//! Heaps that a program has of its own (pools, arenas) and tells of: their names, and what is in
//! them, so that all of it is free when they go.

use std::collections::{HashMap, HashSet};

use heapr_trace::{HeapId, HeapName, ProcessIndex};
use heapr_wire::HEAP_MMAP;

/// Bytes of a name: four parts of sixteen.
const NAME_BYTES_MAX: usize = 64;
/// Names that one number is written with; a program that makes a new one for each arena is not
/// followed further.
const NAMES_MAX: usize = 64;

/// One number's heap.
#[derive(Debug, Default)]
struct OwnHeap {
    /// Parts of a name whose heap is not there yet.
    parts: Vec<u8>,
    /// Names that it had, in the file already.
    names: Vec<String>,
    blocks: HashSet<u64>,
    /// By pool, where the heap has pools; and the pool of each block.
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

/// The heaps of one process, by number.
#[derive(Debug, Default)]
pub(crate) struct OwnHeaps {
    heaps: HashMap<u8, OwnHeap>,
    /// Blocks of malloc's have joined pools.
    has_joined: bool,
}

impl OwnHeaps {
    /// Whether it is to be known what becomes of a heap's blocks.
    #[inline(always)]
    pub(crate) fn follows(&self, heap: u8) -> bool {
        Self::is_own(heap) || self.has_joined
    }

    /// A block that is there is of a pool, and of no other.
    pub(crate) fn joined(&mut self, heap: u8, pool_avma: u64, address_avma: u64) {
        self.has_joined = true;
        let own = self.heaps.entry(heap).or_default();
        own.remove(address_avma);
        own.add_to(pool_avma, address_avma);
    }

    /// The blocks of a pool are of none from now on.
    pub(crate) fn dissolved(&mut self, heap: u8, pool_avma: u64) {
        let Some(own) = self.heaps.get_mut(&heap) else { return };
        for block in own.pools.remove(&pool_avma).unwrap_or_default() {
            own.pool_of.remove(&block);
        }
    }

    /// Whether a heap is the program's own.
    #[inline(always)]
    pub(crate) fn is_own(heap: u8) -> bool {
        heap > HEAP_MMAP
    }

    /// A part of a name: they come in order.
    pub(crate) fn name_part(&mut self, heap: u8, part: u64, bytes: [u8; 16]) {
        let heap = self.heaps.entry(heap).or_default();
        if part == 0 {
            heap.parts.clear();
        }
        if heap.parts.len() < NAME_BYTES_MAX {
            heap.parts.extend(bytes.iter().take_while(|&&byte| byte != 0));
        }
    }

    /// A heap was made; its name, if the file does not have it yet. What an earlier one of the
    /// number left is told too: its end was lost.
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

    /// The same of a block of a pool.
    pub(crate) fn added_to_pool(&mut self, heap: u8, pool_avma: u64, address_avma: u64) {
        self.added(heap, address_avma);
        self.heaps.entry(heap).or_default().add_to(pool_avma, address_avma);
    }

    pub(crate) fn removed(&mut self, heap: u8, address_avma: u64) {
        if let Some(own) = self.heaps.get_mut(&heap) {
            own.remove(address_avma);
        }
    }

    /// A block was resized. Where it has moved, it stays in its pool only if the heap is the
    /// program's own: malloc's says by itself what a new place belongs to.
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

    /// A pool is empty from now on: its blocks, in order.
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

    /// A heap is gone: its blocks, in order.
    pub(crate) fn destroyed(&mut self, heap: u8) -> Vec<u64> {
        let Some(own) = self.heaps.get_mut(&heap) else { return Vec::new() };
        let blocks = std::mem::take(&mut own.blocks);
        own.pools.clear();
        own.pool_of.clear();
        let mut blocks: Vec<u64> = blocks.into_iter().collect();
        blocks.sort_unstable();
        blocks
    }

    /// The names that a forked child goes on with. Its blocks are its parent's, as with any heap.
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
        // It moves, and stays in its pool.
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
        // In its place, and to another: a block that moves is of no pool until that is said.
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
