use heapr_trace::{StackIndex, ThreadIndex};
use proptest::prelude::*;

use super::*;

/// Totals of each heap and of all, stored separately and changed with every event.
#[derive(Debug, Default)]
struct Model {
    all: Totals,
    by_heap: Vec<(ProcessIndex, HeapId, Totals)>,
}

impl Model {
    /// Changes the totals of a heap and of all in the same way.
    fn each(&mut self, process: ProcessIndex, heap: HeapId, change: impl Fn(&mut Totals)) {
        let found = self.by_heap.iter().position(|(owner, of, _)| (*owner, *of) == (process, heap));
        let place = found.unwrap_or_else(|| {
            self.by_heap.push((process, heap, Totals::default()));
            self.by_heap.len() - 1
        });
        change(&mut self.by_heap[place].2);
        change(&mut self.all);
    }
}

fn born(totals: &mut Totals, block: &Block) {
    totals.alloc_count += 1;
    totals.alloc_bytes += block.size_bytes;
    totals.realloc_count += u64::from(block.is_realloc);
    totals.outstanding_count += 1;
    totals.outstanding_bytes += block.size_bytes;
    if totals.outstanding_bytes > totals.peak_bytes {
        totals.peak_bytes = totals.outstanding_bytes;
        totals.peak_count = totals.outstanding_count;
        totals.peak_time_ns = block.alloc_ns;
    }
}

fn died(totals: &mut Totals, block: &Block, death: &Death) {
    totals.free_count += u64::from(death.cause != Cause::Implied);
    totals.implied_frees += u64::from(death.cause == Cause::Implied);
    totals.temporary_count += u64::from(death.is_temporary);
    totals.outstanding_count -= 1;
    totals.outstanding_bytes -= block.size_bytes;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn heaps_in_turn_count_what_each_counts_for_itself(
        steps in prop::collection::vec((0..100_u32, 0..3_u32, 0..2_u8, 0..1000_u64), 0..300),
        // Number of steps for which the heap stays the same.
        stays in 1..8_usize,
    ) {
        let (mut heaps, mut model) = (HeapTotals::default(), Model::default());
        let mut live: Vec<Block> = Vec::new();
        let mut whose = (ProcessIndex(0), HeapId::MALLOC);
        for (step, (chance, process, heap, number)) in steps.into_iter().enumerate() {
            if step % stays == 0 {
                whose = (ProcessIndex(process), HeapId(heap));
            }
            let (process, heap) = whose;
            let epoch = heaps.epoch();
            let peak_bytes = model.all.peak_bytes;
            match chance {
                0..50 => {
                    let block = Block {
                        process,
                        heap,
                        address_avma: step as u64,
                        size_bytes: number,
                        stack: StackIndex(1),
                        thread: ThreadIndex(0),
                        alloc_ns: step as u64,
                        is_realloc: chance % 5 == 0,
                    };
                    heaps.of(process, heap).born(&block, 1);
                    model.each(process, heap, |totals| born(totals, &block));
                    live.push(block);
                }
                50..90 if !live.is_empty() => {
                    let block = live.swap_remove(number as usize % live.len());
                    let cause = [Cause::Free, Cause::Realloc, Cause::Implied][chance as usize % 3];
                    let death = Death {
                        time_ns: step as u64,
                        thread: ThreadIndex(0),
                        stack: StackIndex::EMPTY,
                        is_temporary: cause == Cause::Free && chance % 2 == 0,
                        cause,
                    };
                    heaps.of(block.process, block.heap).died(&block, 1, &death);
                    model.each(block.process, block.heap, |totals| died(totals, &block, &death));
                }
                90..94 => {
                    heaps.of(process, heap).failed();
                    model.each(process, heap, |totals| totals.failed_count += 1);
                }
                _ => {
                    let is_inherited = chance % 2 == 0;
                    heaps.of(process, heap).unmatched_free(is_inherited);
                    model.each(process, heap, |totals| {
                        totals.free_count += 1;
                        totals.unmatched_frees += u64::from(!is_inherited);
                        totals.inherited_frees += u64::from(is_inherited);
                    });
                }
            }
            prop_assert_eq!(heaps.epoch() != epoch, model.all.peak_bytes != peak_bytes);
            prop_assert_eq!(heaps.sum(), model.all);
            prop_assert!(heaps.iter().eq(model.by_heap.iter().copied()));
        }
    }
}
