//! Compares the ledger and its summary with a model that is too simple to be wrong.

use std::collections::HashMap;

use heapr_ledger::{Ledger, SummaryBuilder};
use heapr_trace::{Action, Event, HeapId, ProcessIndex, StackIndex, ThreadIndex};
use proptest::prelude::*;

#[derive(Debug, Clone, Copy)]
struct Block {
    size_bytes: u64,
    stack: u32,
}

#[derive(Debug, Default)]
struct Model {
    live: HashMap<(u32, u64), Block>,
    alloc_count: u64,
    free_count: u64,
    unmatched: u64,
    implied: u64,
    temporary: u64,
    peak_bytes: u64,
    peak_time_ns: u64,
    /// Live bytes by stack at the peak.
    at_peak: HashMap<u32, u64>,
    /// Address of each thread's last allocation, if it has not allocated since.
    last: HashMap<u32, (u32, u64)>,
    makers: HashMap<(u32, u64), u32>,
}

impl Model {
    fn alloc(&mut self, time_ns: u64, process: u32, thread: u32, address: u64, block: Block) {
        self.alloc_count += 1;
        if self.live.insert((process, address), block).is_some() {
            self.implied += 1;
        }
        self.makers.insert((process, address), thread);
        if process.is_multiple_of(2) {
            self.last.insert(thread, (process, address));
        }
        let sum: u64 = self.live.values().map(|block| block.size_bytes).sum();
        if sum > self.peak_bytes {
            self.peak_bytes = sum;
            self.peak_time_ns = time_ns;
            self.at_peak.clear();
            for block in self.live.values() {
                *self.at_peak.entry(block.stack).or_default() += block.size_bytes;
            }
        }
    }

    fn free(&mut self, process: u32, thread: u32, address: u64, is_free: bool) {
        self.free_count += 1;
        if self.live.remove(&(process, address)).is_none() {
            self.unmatched += 1;
            return;
        }
        let is_last = self.last.get(&thread) == Some(&(process, address));
        if is_free && is_last && self.makers.get(&(process, address)) == Some(&thread) {
            self.temporary += 1;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn summary_is_that_of_the_model(
        steps in proptest::collection::vec((0..5_u8, 0..4_u32, 0..20_u64, 0..20_u64, 1..500_u64, 0..6_u32), 0..400)
    ) {
        let mut model = Model::default();
        let mut ledger = Ledger::new();
        let mut summary = SummaryBuilder::new();
        for (number, (kind, place, address, old, size_bytes, stack)) in steps.into_iter().enumerate() {
            let time_ns = number as u64;
            // Two processes of one thread each, with the same addresses. Each has a malloc heap and
            // a mapping heap, with different addresses. The model treats heaps as processes,
            // numbered by `place`.
            let (thread, heap) = (place / 2, HeapId((place % 2) as u8));
            let process = place;
            let base = u64::from(heap.0) << 20;
            let (address_avma, old_address_avma) = (base + address * 16, base + old * 16);
            let block = Block { size_bytes, stack };
            let action = match kind {
                0 | 1 => {
                    model.alloc(time_ns, process, thread, address_avma, block);
                    Action::Alloc { address_avma, size_bytes, stack: StackIndex(stack), is_moved_realloc: false }
                }
                2 | 3 => {
                    model.free(process, thread, address_avma, true);
                    Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false }
                }
                _ => {
                    model.free(process, thread, old_address_avma, false);
                    model.alloc(time_ns, process, thread, address_avma, block);
                    Action::Realloc { old_address_avma, address_avma, size_bytes, stack: StackIndex(stack) }
                }
            };
            let event = Event { time_ns, thread: ThreadIndex(thread), heap, action };
            ledger.apply(&event, ProcessIndex(thread), &mut summary);
            prop_assert_eq!(ledger.live_count(), model.live.len());
        }
        let mut blocks: Vec<_> =
            ledger.live_blocks().map(|block| (block.process.0 * 2 + u32::from(block.heap.0), block.address_avma, block.size_bytes)).collect();
        let mut expected: Vec<_> =
            model.live.iter().map(|(&(process, address), block)| (process, address, block.size_bytes)).collect();
        blocks.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(blocks, expected);
        let summary = summary.finish();
        let totals = summary.totals;
        prop_assert_eq!(totals.alloc_count, model.alloc_count);
        prop_assert_eq!(totals.free_count, model.free_count);
        prop_assert_eq!(totals.unmatched_frees, model.unmatched);
        prop_assert_eq!(totals.implied_frees, model.implied);
        prop_assert_eq!(totals.temporary_count, model.temporary);
        prop_assert_eq!(totals.outstanding_count, model.live.len() as u64);
        prop_assert_eq!((totals.peak_bytes, totals.peak_time_ns), (model.peak_bytes, model.peak_time_ns));
        for (process, heap, totals) in &summary.by_heap {
            let place = process.0 * 2 + u32::from(heap.0);
            let live = model.live.iter().filter(|((of, _), _)| *of == place).map(|(_, block)| block.size_bytes);
            prop_assert_eq!((totals.outstanding_count, totals.outstanding_bytes), (live.clone().count() as u64, live.sum()));
        }
        let mut keys: Vec<_> = summary.by_stack.iter().map(|entry| (entry.stack, entry.heap, entry.process)).collect();
        keys.dedup();
        prop_assert!(keys.is_sorted() && keys.len() == summary.by_stack.len());
        let mut at_peak: HashMap<u32, u64> = HashMap::new();
        for entry in &summary.by_stack {
            // A stack's number belongs to one process in a real file; here both use the same
            // numbers.
            *at_peak.entry(entry.stack.0).or_default() += entry.amounts.peak_bytes;
        }
        at_peak.retain(|_, bytes| *bytes > 0);
        prop_assert_eq!(at_peak, model.at_peak);
    }
}
