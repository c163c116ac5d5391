//! Totals by process and heap, and the state for a peak over all of them.
//!
//! Most events concern the same heap as the one before. The totals of this *current* heap are
//! stored together, and an event changes only counters that cannot be derived. The live blocks of
//! the other heaps are known as a sum. It changes when another heap becomes the current one:
//!
//! ```text
//! all heaps   |  current: born, freed, live bytes  |  the rest: live bytes and count  |
//!                 every event                         when the heap changes
//! ```

use std::collections::HashMap;

use heapr_trace::{Block, HeapId, ProcessIndex, Totals};

use crate::ledger::{Cause, Death};

/// Key of a heap of a process.
fn key(process: ProcessIndex, heap: HeapId) -> u64 {
    u64::from(process.0) << 8 | u64::from(heap.0)
}

/// Key before the first event; no heap has it.
const NO_KEY: u64 = u64::MAX;

/// Blocks that an ended process has not freed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Left {
    pub(crate) bytes: u64,
    pub(crate) count: u64,
}

impl Left {
    pub(crate) fn add(&mut self, bytes: u64, count: u64) {
        self.bytes = self.bytes.wrapping_add(bytes);
        self.count = self.count.wrapping_add(count);
    }
}

/// Totals of all heaps.
#[derive(Debug, Clone)]
pub(crate) struct HeapTotals {
    current_key: u64,
    /// Totals of the current heap; `outstanding_count` is derived from other counters.
    current: Totals,
    /// Live bytes and blocks of the other heaps.
    rest_bytes: u64,
    rest_count: u64,
    /// Peak over all heaps.
    peak_bytes: u64,
    peak_count: u64,
    peak_time_ns: u64,
    /// Counter that changes with each peak.
    epoch: u32,
    current_place: u32,
    /// Totals by index. The entry of the current heap is outdated until another one becomes
    /// current.
    by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
    /// Blocks not freed by ended processes, by heap: outstanding, but not live.
    left: HashMap<u64, Left>,
    /// Entry of `left` for the current heap.
    current_left: Left,
    places: HashMap<u64, u32>,
}

impl Default for HeapTotals {
    fn default() -> Self {
        Self {
            current_key: NO_KEY,
            current: Totals::default(),
            rest_bytes: 0,
            rest_count: 0,
            peak_bytes: 0,
            peak_count: 0,
            peak_time_ns: 0,
            epoch: 1,
            current_place: 0,
            by_heap: Vec::new(),
            left: HashMap::new(),
            current_left: Left::default(),
            places: HashMap::new(),
        }
    }
}

impl HeapTotals {
    /// Largest number of live bytes of the current heap.
    pub(crate) fn current_peak_bytes(&self) -> u64 {
        self.current.peak_bytes
    }

    /// Counter that changes with each peak over all heaps.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Makes a heap the current one.
    #[inline(always)]
    pub(crate) fn of(&mut self, process: ProcessIndex, heap: HeapId) -> &mut Self {
        if self.current_key != key(process, heap) {
            self.change(process, heap);
        }
        self
    }

    #[cold]
    #[inline(never)]
    fn change(&mut self, process: ProcessIndex, heap: HeapId) {
        let old = self.settled();
        if let Some((_, _, totals)) = self.by_heap.get_mut(self.current_place as usize) {
            *totals = old;
        }
        let next = self.by_heap.len() as u32;
        let place = *self.places.entry(key(process, heap)).or_insert(next);
        if place == next {
            self.by_heap.push((process, heap, Totals::default()));
        }
        let new = self.by_heap.get(place as usize).map_or_else(Totals::default, |(_, _, totals)| *totals);
        self.rest_bytes =
            self.rest_bytes.wrapping_add(old.outstanding_bytes).wrapping_sub(new.outstanding_bytes);
        self.rest_count =
            self.rest_count.wrapping_add(old.outstanding_count).wrapping_sub(new.outstanding_count);
        if self.current_left.count > 0 {
            self.left.insert(self.current_key, self.current_left);
        }
        (self.current_key, self.current_place, self.current) = (key(process, heap), place, new);
        self.current_left = self.left.get(&self.current_key).copied().unwrap_or_default();
    }

    /// Number of live blocks of the current heap: allocated blocks minus ended and left ones.
    #[inline(always)]
    fn current_count(&self) -> u64 {
        let Totals { alloc_count, free_count, unmatched_frees, inherited_frees, implied_frees, .. } =
            self.current;
        let without_block = unmatched_frees + inherited_frees;
        let made = alloc_count.wrapping_sub(self.current_left.count);
        made.wrapping_sub(free_count).wrapping_add(without_block).wrapping_sub(implied_frees)
    }

    /// Totals of the current heap, complete.
    fn settled(&self) -> Totals {
        Totals { outstanding_count: self.current_count(), ..self.current }
    }

    /// Counts a new block of the current heap, which stands for `count` blocks.
    #[inline(always)]
    pub(crate) fn born(&mut self, block: &Block, count: u64) {
        let current = &mut self.current;
        current.alloc_count = current.alloc_count.wrapping_add(count);
        current.alloc_bytes = current.alloc_bytes.wrapping_add(block.size_bytes);
        if block.is_realloc {
            current.realloc_count = current.realloc_count.wrapping_add(count);
        }
        let live_bytes = current.outstanding_bytes.wrapping_add(block.size_bytes);
        current.outstanding_bytes = live_bytes;
        let all_bytes = live_bytes.wrapping_add(self.rest_bytes);
        if live_bytes > current.peak_bytes {
            self.current.peak_bytes = live_bytes;
            self.current.peak_count = self.current_count();
            self.current.peak_time_ns = block.alloc_ns;
        }
        if all_bytes > self.peak_bytes {
            self.peak_bytes = all_bytes;
            self.peak_count = self.current_count().wrapping_add(self.rest_count);
            self.peak_time_ns = block.alloc_ns;
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    /// Counts the end of a block of the current heap.
    #[inline(always)]
    pub(crate) fn died(&mut self, block: &Block, count: u64, death: &Death) {
        let totals = &mut self.current;
        let ends =
            if death.cause == Cause::Implied { &mut totals.implied_frees } else { &mut totals.free_count };
        *ends = ends.wrapping_add(count);
        totals.temporary_count += u64::from(death.is_temporary);
        totals.outstanding_bytes = totals.outstanding_bytes.wrapping_sub(block.size_bytes);
    }

    /// Counts a block of the current heap whose process has ended without freeing it.
    pub(crate) fn left(&mut self, block: &Block, count: u64) {
        self.current.outstanding_bytes = self.current.outstanding_bytes.wrapping_sub(block.size_bytes);
        self.current_left.add(block.size_bytes, count);
    }

    /// Counts a failed call of the current heap.
    pub(crate) fn failed(&mut self) {
        self.current.failed_count += 1;
    }

    /// Counts a free of the current heap whose address was never seen allocated.
    pub(crate) fn unmatched_free(&mut self, is_inherited: bool) {
        self.current.free_count += 1;
        self.current.unmatched_frees += u64::from(!is_inherited);
        self.current.inherited_frees += u64::from(is_inherited);
    }

    /// Totals by process and heap, in the order of first use.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ProcessIndex, HeapId, Totals)> + '_ {
        self.by_heap.iter().map(|&(process, heap, totals)| {
            let is_current = key(process, heap) == self.current_key;
            let mut totals = if is_current { self.settled() } else { totals };
            let known = self.left.get(&key(process, heap)).copied().unwrap_or_default();
            let left = if is_current { self.current_left } else { known };
            totals.outstanding_bytes = totals.outstanding_bytes.wrapping_add(left.bytes);
            totals.outstanding_count = totals.outstanding_count.wrapping_add(left.count);
            (process, heap, totals)
        })
    }

    /// Live bytes and blocks over all heaps.
    pub(crate) fn live(&self) -> (u64, u64) {
        (
            self.current.outstanding_bytes.wrapping_add(self.rest_bytes),
            self.current_count().wrapping_add(self.rest_count),
        )
    }

    /// Totals over all heaps.
    pub(crate) fn sum(&self) -> Totals {
        let mut sum = Totals {
            peak_bytes: self.peak_bytes,
            peak_count: self.peak_count,
            peak_time_ns: self.peak_time_ns,
            ..Totals::default()
        };
        for (_, _, totals) in self.iter() {
            sum.outstanding_count = sum.outstanding_count.wrapping_add(totals.outstanding_count);
            sum.outstanding_bytes = sum.outstanding_bytes.wrapping_add(totals.outstanding_bytes);
            sum.alloc_count += totals.alloc_count;
            sum.alloc_bytes = sum.alloc_bytes.wrapping_add(totals.alloc_bytes);
            sum.free_count += totals.free_count;
            sum.realloc_count += totals.realloc_count;
            sum.failed_count += totals.failed_count;
            sum.temporary_count += totals.temporary_count;
            sum.unmatched_frees += totals.unmatched_frees;
            sum.inherited_frees += totals.inherited_frees;
            sum.implied_frees += totals.implied_frees;
        }
        sum
    }
}

#[cfg(test)]
mod tests;
