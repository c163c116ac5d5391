//! Totals by stack, by process and heap, and overall, with exact peaks, in constant time per event.
//!
//! **Who held the peak.** At a new peak nothing is copied: an epoch counter is incremented. Before a stack's live bytes
//! change it compares the epoch that it saw last; if that is another, its live bytes until now are what it held at the last
//! peak, and are kept:
//!
//! ```text
//! peak (epoch 7)      stack s: live 100, seen 6
//! free of 40 by s     seen 6 != 7: at_peak = 100, seen = 7; live = 60
//! end                 seen == 7: held 100 at the peak        (a stack that never changed since: its live bytes)
//! ```

use std::collections::HashMap;

use heapr_trace::{Block, Event, HeapId, ProcessIndex, StackIndex, StackTotals, Summary, Totals};

use crate::ledger::{Cause, Death, Observer};

/// Live bytes and count, and what they were at the last peak. (The ledger can hold 2^32 blocks.)
#[derive(Debug, Clone, Copy, Default)]
struct Live {
    bytes: u64,
    peak_bytes: u64,
    count: u32,
    peak_count: u32,
    epoch: u32,
}

impl Live {
    #[inline(always)]
    fn settle(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.peak_bytes = self.bytes;
            self.peak_count = self.count;
            self.epoch = epoch;
        }
    }

    fn at_peak(mut self, epoch: u32) -> (u64, u64) {
        self.settle(epoch);
        (self.peak_bytes, u64::from(self.peak_count))
    }
}

/// One cache line.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct StackState {
    live: Live,
    total_count: u64,
    total_bytes: u64,
    realloc_count: u32,
    temporary_count: u32,
    process: ProcessIndex,
    stack: StackIndex,
}

const _: () = assert!(size_of::<StackState>() == 64);

/// An [`Observer`] that makes a [`Summary`].
#[derive(Debug, Default)]
pub struct SummaryBuilder {
    /// Over all heaps, only what a peak needs; the rest is the sum of `by_heap`.
    live_bytes: u64,
    live_count: u64,
    peak_bytes: u64,
    peak_count: u64,
    peak_time_ns: u64,
    epoch: u32,
    by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
    /// Places in `by_heap` of the malloc heap, by process.
    malloc_places: Vec<u32>,
    /// Stacks of the malloc heap, in the order in which they first allocate; the empty stack and other heaps are in `others`. (Of the
    /// stack tree's nodes one in four to thirteen allocates: laid out by the nodes' numbers they took so many times the caches.)
    stacks: Vec<StackState>,
    /// By stack: its place in `stacks` plus one, or 0.
    stack_places: Vec<u32>,
    others: Vec<(ProcessIndex, HeapId, StackIndex, StackState)>,
    /// Places in `others`.
    other_places: HashMap<(ProcessIndex, HeapId, StackIndex), u32>,
    /// Places in `by_heap` of the other heaps.
    heap_places: HashMap<(ProcessIndex, HeapId), u32>,
}

impl SummaryBuilder {
    /// Nothing counted.
    #[must_use]
    pub fn new() -> Self {
        Self { epoch: 1, ..Self::default() }
    }

    /// The totals so far by process and heap.
    #[must_use]
    pub fn by_heap(&self) -> &[(ProcessIndex, HeapId, Totals)] {
        &self.by_heap
    }

    /// The totals so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut sum = Totals {
            outstanding_count: self.live_count,
            outstanding_bytes: self.live_bytes,
            peak_bytes: self.peak_bytes,
            peak_count: self.peak_count,
            peak_time_ns: self.peak_time_ns,
            ..Totals::default()
        };
        for (_, _, totals) in &self.by_heap {
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

    /// Live bytes of a process, over its heaps.
    #[must_use]
    pub fn live_bytes_of(&self, process: ProcessIndex) -> u64 {
        let of_it = self.by_heap.iter().filter(|(owner, _, _)| *owner == process);
        of_it.fold(0, |sum, (_, _, totals)| sum.saturating_add(totals.outstanding_bytes))
    }

    #[inline(always)]
    fn heap(&mut self, process: ProcessIndex, heap: HeapId) -> &mut Totals {
        let place = match self.malloc_places.get(process.0 as usize) {
            Some(&place) if heap == HeapId::MALLOC && place != u32::MAX => place as usize,
            _ => self.find_heap(process, heap),
        };
        &mut self.by_heap[place].2
    }

    #[cold]
    fn find_heap(&mut self, process: ProcessIndex, heap: HeapId) -> usize {
        let next = self.by_heap.len() as u32;
        let place = *self.heap_places.entry((process, heap)).or_insert(next) as usize;
        if place == self.by_heap.len() {
            self.by_heap.push((process, heap, Totals::default()));
        }
        if heap == HeapId::MALLOC {
            let number = process.0 as usize;
            if number >= self.malloc_places.len() {
                self.malloc_places.resize(number + 1, u32::MAX);
            }
            self.malloc_places[number] = place as u32;
        }
        place
    }

    #[inline(always)]
    fn stack(&mut self, block: &Block) -> &mut StackState {
        let number = block.stack.0 as usize;
        if block.heap == HeapId::MALLOC && number != 0 {
            let place = match self.stack_places.get(number) {
                Some(&place) if place != 0 => place,
                _ => self.new_stack(block),
            };
            let state = &mut self.stacks[place as usize - 1];
            state.process = block.process;
            return state;
        }
        self.other_stack(block)
    }

    /// Makes room for a stack; its place plus one.
    #[cold]
    fn new_stack(&mut self, block: &Block) -> u32 {
        self.stacks.push(StackState { stack: block.stack, ..StackState::default() });
        let (number, place) = (block.stack.0 as usize, self.stacks.len() as u32);
        if number >= self.stack_places.len() {
            self.stack_places.resize((number + 1).max(self.stack_places.len() * 3 / 2), 0);
        }
        self.stack_places[number] = place;
        place
    }

    #[cold]
    fn other_stack(&mut self, block: &Block) -> &mut StackState {
        let next = self.others.len() as u32;
        let key = (block.process, block.heap, block.stack);
        let place = *self.other_places.entry(key).or_insert(next) as usize;
        if place == self.others.len() {
            let state = StackState { process: block.process, ..StackState::default() };
            self.others.push((block.process, block.heap, block.stack, state));
        }
        &mut self.others[place].3
    }

    /// The summary; `event_count` and `duration_ns` are the caller's to fill in.
    #[must_use]
    pub fn finish(self) -> Summary {
        let totals = self.totals();
        let Self { epoch, by_heap, stacks, others, .. } = self;
        let total = |stack: StackIndex, heap: HeapId, state: &StackState| {
            let (peak_bytes, peak_count) = state.live.at_peak(epoch);
            StackTotals {
                stack,
                process: state.process,
                heap,
                total_count: state.total_count,
                total_bytes: state.total_bytes,
                realloc_count: u64::from(state.realloc_count),
                temporary_count: u64::from(state.temporary_count),
                outstanding_count: u64::from(state.live.count),
                outstanding_bytes: state.live.bytes,
                peak_count,
                peak_bytes,
            }
        };
        let mut by_stack: Vec<StackTotals> = stacks
            .iter()
            .filter(|state| state.total_count != 0)
            .map(|state| total(state.stack, HeapId::MALLOC, state))
            .collect();
        by_stack.extend(others.iter().map(|(_, heap, stack, state)| total(*stack, *heap, state)));
        by_stack.sort_by_key(|entry| (entry.stack, entry.heap, entry.process));
        Summary { totals, by_heap, by_stack, ..Summary::default() }
    }
}

impl Observer for SummaryBuilder {
    #[inline(always)]
    fn soon(&self, stack: StackIndex) -> u64 {
        let place = self.stack_places.get(stack.0 as usize).copied().unwrap_or_default() as usize;
        self.stacks.get(place.wrapping_sub(1)).map_or(0, |state| state.live.bytes)
    }

    #[inline(always)]
    fn born(&mut self, block: &Block) {
        let epoch = self.epoch;
        let is_realloc = u64::from(block.is_realloc);
        let size_bytes = block.size_bytes;
        let state = self.stack(block);
        state.live.settle(epoch);
        state.live.bytes = state.live.bytes.wrapping_add(size_bytes);
        state.live.count = state.live.count.wrapping_add(1);
        state.total_count += 1;
        state.total_bytes = state.total_bytes.wrapping_add(size_bytes);
        state.realloc_count = state.realloc_count.saturating_add(u32::from(block.is_realloc));
        let heap = self.heap(block.process, block.heap);
        heap.alloc_count += 1;
        heap.alloc_bytes = heap.alloc_bytes.wrapping_add(size_bytes);
        heap.realloc_count += is_realloc;
        heap.outstanding_count += 1;
        heap.outstanding_bytes = heap.outstanding_bytes.wrapping_add(size_bytes);
        if heap.outstanding_bytes > heap.peak_bytes {
            heap.peak_bytes = heap.outstanding_bytes;
            heap.peak_count = heap.outstanding_count;
            heap.peak_time_ns = block.alloc_ns;
        }
        self.live_count += 1;
        self.live_bytes = self.live_bytes.wrapping_add(size_bytes);
        if self.live_bytes > self.peak_bytes {
            self.peak_bytes = self.live_bytes;
            self.peak_count = self.live_count;
            self.peak_time_ns = block.alloc_ns;
            self.epoch = self.epoch.wrapping_add(1);
        }
    }

    #[inline(always)]
    fn died(&mut self, block: &Block, death: &Death) {
        let epoch = self.epoch;
        let temporary = u32::from(death.is_temporary);
        let state = self.stack(block);
        state.live.settle(epoch);
        state.live.bytes = state.live.bytes.wrapping_sub(block.size_bytes);
        state.live.count = state.live.count.wrapping_sub(1);
        state.temporary_count = state.temporary_count.saturating_add(temporary);
        self.live_count = self.live_count.wrapping_sub(1);
        self.live_bytes = self.live_bytes.wrapping_sub(block.size_bytes);
        let totals = self.heap(block.process, block.heap);
        totals.free_count += u64::from(death.cause != Cause::Implied);
        totals.implied_frees += u64::from(death.cause == Cause::Implied);
        totals.temporary_count += u64::from(temporary);
        totals.outstanding_count = totals.outstanding_count.wrapping_sub(1);
        totals.outstanding_bytes = totals.outstanding_bytes.wrapping_sub(block.size_bytes);
    }

    fn failed(&mut self, event: &Event, process: ProcessIndex, _size_bytes: u64, _stack: StackIndex) {
        self.heap(process, event.heap).failed_count += 1;
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        let totals = self.heap(process, event.heap);
        totals.free_count += 1;
        totals.unmatched_frees += u64::from(!is_inherited);
        totals.inherited_frees += u64::from(is_inherited);
    }
}
