//! Totals by stack, by process and heap, and overall, with exact peaks, in constant time per event.
//!
//! **Peak by stack.** A new peak copies nothing, and only increments an epoch counter. Before a
//! stack's live bytes change, the stack compares its last seen epoch. If the epoch differs, its
//! live bytes before the change are those at the last peak, and are stored:
//!
//! ```text
//! peak (epoch 7)      stack s: live 100, seen 6
//! free of 40 by s     seen 6 != 7: at_peak = 100, seen = 7; live = 60
//! end                 seen == 7: held 100 at the peak        (a stack that never changed since: its live bytes)
//! ```

use std::collections::HashMap;

use heapr_trace::{
    Block, BlockEstimate, CourseRow, Estimate, Event, HeapId, ProcessIndex, Sampling, SamplingPeriod,
    StackIndex, StackTotals, Summary, Totals, Weight,
};

use crate::heap_totals::{HeapTotals, Left};
use crate::ledger::{Death, Observer};
use crate::stack_state::StackState;
use crate::variance_sums::{Raised, StackKey, VarianceSums};

/// An [`Observer`] that builds a [`Summary`].
#[derive(Debug, Clone, Default)]
pub struct SummaryBuilder {
    heaps: HeapTotals,
    /// Stacks of the malloc heap, in the order in which they first allocate; the empty stack and
    /// other heaps are in `others`. (One in four to thirteen nodes of the stack tree allocates.
    /// Indexed by node number, the table took that many times the cache space.)
    stacks: Vec<StackState>,
    /// Index of each stack in `stacks`; 0 for none. Entry 0 of `stacks` exists and has no blocks,
    /// so that loading it needs no branch.
    stack_places: Vec<u32>,
    others: Vec<(ProcessIndex, HeapId, StackIndex, StackState)>,
    /// Index of each entry in `others`.
    other_places: HashMap<(ProcessIndex, HeapId, StackIndex), u32>,
    /// Index in `others` that was used last. If events carry no stacks, all of a process's malloc
    /// heap is one entry. (Hashing the key each time took a third of the recorder's time.)
    last_other: usize,
    /// Blocks not freed by ended processes, by stack. Stacks of the malloc heap have one entry for
    /// all processes.
    left: HashMap<StackKey, Left>,
    /// Sampling, from which weights are computed; `None` if each block counts as itself.
    sampling: Option<Sampling>,
    /// Variances of the sums; empty without sampling.
    variances: VarianceSums,
}

/// A block scaled by its weight.
fn scaled(block: &Block, weight: Weight) -> Block {
    Block { size_bytes: weight.bytes, ..*block }
}

/// Process in the key of a stack's totals; `None` for stacks whose totals have no process.
fn owner(process: ProcessIndex, heap: HeapId, stack: StackIndex) -> Option<ProcessIndex> {
    (heap != HeapId::MALLOC || stack == StackIndex::EMPTY).then_some(process)
}

fn stack_key(block: &Block) -> StackKey {
    (owner(block.process, block.heap, block.stack), block.heap, block.stack)
}

impl SummaryBuilder {
    /// A builder without counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder without counts, for blocks that may be samples.
    #[must_use]
    pub fn of_samples(sampling: &Sampling) -> Self {
        Self { sampling: (!sampling.is_exact()).then(|| sampling.clone()), ..Self::default() }
    }

    /// Adds a sampling period: later blocks may be its samples.
    pub fn add_sampling(&mut self, period: SamplingPeriod) {
        self.sampling.get_or_insert_default().add(period);
    }

    /// The sampling; `None` if each block counts as itself.
    #[must_use]
    pub fn sampling(&self) -> Option<&Sampling> {
        self.sampling.as_ref()
    }

    /// The totals so far by process and heap.
    pub fn by_heap(&self) -> impl Iterator<Item = (ProcessIndex, HeapId, Totals)> + '_ {
        self.heaps.iter().map(|(process, heap, totals)| match self.sampling {
            None => (process, heap, totals),
            Some(_) => (process, heap, Totals { variances: self.variances.of_heap(process, heap), ..totals }),
        })
    }

    /// The totals so far.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals { variances: self.variances.of_all(), ..self.heaps.sum() }
    }

    /// Live bytes and blocks over all heaps. Blocks not freed by ended processes are outstanding,
    /// and not live.
    #[must_use]
    pub fn live(&self) -> BlockEstimate {
        let ((bytes, count), variances) = (self.heaps.live(), self.variances.live());
        BlockEstimate {
            bytes: Estimate::new(bytes, variances.bytes_kib2),
            count: Estimate::new(count, variances.count),
        }
    }

    /// Outstanding bytes of a process over its heaps; these are its live bytes until it ends.
    #[must_use]
    pub fn live_bytes_of(&self, process: ProcessIndex) -> u64 {
        let of_it = self.by_heap().filter(|(owner, _, _)| *owner == process);
        of_it.fold(0, |sum, (_, _, totals)| sum.saturating_add(totals.outstanding_bytes))
    }

    /// Number of blocks allocated so far in all heaps except mappings.
    pub(crate) fn made_count(&self) -> u64 {
        self.by_heap()
            .filter(|(_, heap, _)| *heap != HeapId::MMAP)
            .map(|(_, _, totals)| totals.alloc_count)
            .sum()
    }

    /// Passes the live amounts of each stack to `visit`, with their process. Mappings are left out,
    /// because malloc's blocks lie in them.
    pub(crate) fn for_each_live(&self, mut visit: impl FnMut(ProcessIndex, CourseRow)) {
        let others = self.others.iter().filter(|(_, heap, _, _)| *heap != HeapId::MMAP);
        let of_malloc = self.stacks.iter().map(|state| (HeapId::MALLOC, state));
        let states = of_malloc.chain(others.map(|(_, heap, _, state)| (*heap, state)));
        for (heap, state) in states {
            let mut row = state.course_row();
            if row.live_count == 0 {
                continue;
            }
            if self.sampling.is_some() {
                let key = (owner(state.process, heap, state.stack), heap, state.stack);
                row.variances = self.variances.live_of(key);
            }
            visit(state.process, row);
        }
    }

    #[inline(always)]
    fn stack(&mut self, block: &Block) -> &mut StackState {
        // (No index belongs to the empty stack.)
        let place = self.stack_places.get(block.stack.0 as usize).copied().unwrap_or_default();
        let place = place as usize;
        if block.heap == HeapId::MALLOC && place != 0 && place < self.stacks.len() {
            let state = &mut self.stacks[place];
            state.process = block.process;
            return state;
        }
        self.seldom_stack(block.process, block.heap, block.stack)
    }

    /// Counters of a stack that is new, or outside of the malloc heap.
    #[cold]
    #[inline(never)]
    fn seldom_stack(&mut self, process: ProcessIndex, heap: HeapId, stack: StackIndex) -> &mut StackState {
        if heap == HeapId::MALLOC && stack != StackIndex::EMPTY {
            let place = self.new_stack(process, stack) as usize;
            return &mut self.stacks[place];
        }
        self.other_stack(process, heap, stack)
    }

    /// Adds a stack; returns its index.
    fn new_stack(&mut self, process: ProcessIndex, stack: StackIndex) -> u32 {
        if self.stacks.is_empty() {
            self.stacks.push(StackState::default());
        }
        let (number, place) = (stack.0 as usize, self.stacks.len() as u32);
        self.stacks.push(StackState::new(process, stack));
        if number >= self.stack_places.len() {
            self.stack_places.resize((number + 1).max(self.stack_places.len() * 3 / 2), 0);
        }
        self.stack_places[number] = place;
        place
    }

    fn other_stack(&mut self, process: ProcessIndex, heap: HeapId, stack: StackIndex) -> &mut StackState {
        let key = (process, heap, stack);
        let is_last =
            self.others.get(self.last_other).is_some_and(|other| (other.0, other.1, other.2) == key);
        if !is_last {
            let next = self.others.len() as u32;
            self.last_other = *self.other_places.entry(key).or_insert(next) as usize;
            if self.last_other == self.others.len() {
                let state = StackState::new(process, stack);
                self.others.push((process, heap, stack, state));
            }
        }
        &mut self.others[self.last_other].3
    }

    /// Counts a new block that stands for others.
    #[cold]
    #[inline(never)]
    fn count_sample_birth(&mut self, block: &Block, weight: Weight) {
        let epoch = self.heaps.epoch();
        let peak_bytes = self.heaps.of(block.process, block.heap).current_peak_bytes();
        self.count_birth(&scaled(block, weight), weight.count);
        let raised = Raised {
            epoch,
            of_heap: self.heaps.current_peak_bytes() > peak_bytes,
            of_all: self.heaps.epoch() != epoch,
        };
        self.variances.born((stack_key(block), block.process), weight, block.is_realloc, raised);
    }

    /// Counts the end of a block that stands for others.
    #[cold]
    #[inline(never)]
    fn count_sample_death(&mut self, block: &Block, weight: Weight, death: &Death) {
        let epoch = self.heaps.epoch();
        self.variances.died((stack_key(block), block.process), weight, epoch, false);
        self.count_death(&scaled(block, weight), weight.count, death);
    }

    #[inline(always)]
    fn count_birth(&mut self, block: &Block, count: u64) {
        let epoch = self.heaps.epoch();
        self.stack(block).born(block, count, epoch);
        self.heaps.of(block.process, block.heap).born(block, count);
    }

    #[inline(always)]
    fn count_death(&mut self, block: &Block, count: u64, death: &Death) {
        let epoch = self.heaps.epoch();
        self.stack(block).died(block, count, death.is_temporary, epoch);
        self.heaps.of(block.process, block.heap).died(block, count, death);
    }

    #[cold]
    fn count_left(&mut self, block: &Block, count: u64) {
        let epoch = self.heaps.epoch();
        self.stack(block).died(block, count, false, epoch);
        self.heaps.of(block.process, block.heap).left(block, count);
        self.left.entry(stack_key(block)).or_default().add(block.size_bytes, count);
    }

    /// Returns the summary; the caller fills in `event_count` and `duration_ns`.
    #[must_use]
    pub fn finish(self) -> Summary {
        let (totals, by_heap) = (self.totals(), self.by_heap().collect());
        let epoch = self.heaps.epoch();
        let Self { stacks, others, left, variances, sampling, .. } = self;
        let total = |stack: StackIndex, heap: HeapId, state: &StackState| {
            let mut totals = state.totals(stack, heap, epoch);
            let key = (owner(state.process, heap, stack), heap, stack);
            if sampling.is_some() {
                totals.amounts.variances = variances.of_stack(key, epoch);
            }
            let left = left.get(&key).copied().unwrap_or_default();
            totals.amounts.outstanding_bytes = totals.amounts.outstanding_bytes.wrapping_add(left.bytes);
            totals.amounts.outstanding_count = totals.amounts.outstanding_count.wrapping_add(left.count);
            totals
        };
        let mut by_stack: Vec<StackTotals> = stacks
            .iter()
            .filter(|state| state.has_allocated())
            .map(|state| total(state.stack, HeapId::MALLOC, state))
            .collect();
        by_stack.extend(others.iter().map(|(_, heap, stack, state)| total(*stack, *heap, state)));
        by_stack.sort_by_key(|entry| (entry.stack, entry.heap, entry.process));
        Summary { totals, by_heap, by_stack, counts_living: true, ..Summary::default() }
    }
}

impl Observer for SummaryBuilder {
    #[inline(always)]
    fn prefetch(&self, stack: StackIndex) -> u64 {
        let place = self.stack_places.get(stack.0 as usize).copied().unwrap_or_default() as usize;
        self.stacks.get(place).map_or(0, StackState::touch)
    }

    #[inline(always)]
    fn born(&mut self, block: &Block) {
        if let Some(sampling) = &self.sampling {
            let weight = sampling.weight(block);
            return self.count_sample_birth(block, weight);
        }
        self.count_birth(block, 1);
    }

    #[inline(always)]
    fn died(&mut self, block: &Block, death: &Death) {
        if let Some(sampling) = &self.sampling {
            // A thread's calls between two samples are unknown.
            let is_temporary = death.is_temporary && !sampling.is_sample(block);
            let weight = sampling.weight(block);
            return self.count_sample_death(block, weight, &Death { is_temporary, ..*death });
        }
        self.count_death(block, 1, death);
    }

    fn left(&mut self, block: &Block, _time_ns: u64) {
        if let Some(sampling) = &self.sampling {
            let weight = sampling.weight(block);
            let epoch = self.heaps.epoch();
            self.variances.died((stack_key(block), block.process), weight, epoch, true);
            return self.count_left(&scaled(block, weight), weight.count);
        }
        self.count_left(block, 1);
    }

    fn failed(&mut self, event: &Event, process: ProcessIndex, _size_bytes: u64, _stack: StackIndex) {
        self.heaps.of(process, event.heap).failed();
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        if self.sampling.as_ref().is_some_and(|sampling| sampling.is_in_doubt(process)) {
            return;
        }
        self.heaps.of(process, event.heap).unmatched_free(is_inherited);
    }
}
