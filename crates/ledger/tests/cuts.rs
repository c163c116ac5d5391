//! A cut shows exactly the blocks that were live at its begin, whatever happens during the export.

use std::collections::BTreeMap;

use heapr_ledger::Ledger;
use heapr_trace::{Action, Block, Event, HeapId, ProcessIndex, StackIndex, ThreadIndex};
use proptest::prelude::*;

type Key = (ProcessIndex, HeapId, u64);

#[derive(Debug, Clone)]
enum Step {
    Event { action: Action, process: u32, heap: u8 },
    Cut,
    Slice { group_count: usize },
    Drop { process: u32 },
}

fn address() -> impl Strategy<Value = u64> {
    // Few addresses, many in one group, some of odd alignment: slots are used repeatedly.
    (0..4_u64, 0..40_u64, 0..2_u64).prop_map(|(area, slot, odd)| (area << 33) + slot * 16 + odd * 8)
}

fn step() -> impl Strategy<Value = Step> {
    let stack = StackIndex(1);
    let action = prop_oneof![
        4 => (address(), 0..99_u64).prop_map(move |(address_avma, size_bytes)| Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false }),
        3 => address().prop_map(move |address_avma| Action::Free { address_avma, stack, is_moved_realloc: false }),
        1 => (address(), address(), 0..99_u64).prop_map(move |(old_address_avma, address_avma, size_bytes)| Action::Realloc { old_address_avma, address_avma, size_bytes, stack }),
    ];
    prop_oneof![
        40 => (action, 0..3_u32, 0..2_u8).prop_map(|(action, process, heap)| Step::Event { action, process, heap }),
        1 => Just(Step::Cut),
        3 => (0..6_usize).prop_map(|group_count| Step::Slice { group_count }),
        1 => (0..3_u32).prop_map(|process| Step::Drop { process }),
    ]
}

fn live(ledger: &Ledger) -> BTreeMap<Key, Block> {
    ledger.live_blocks().map(|block| (key(&block), block)).collect()
}

fn key(block: &Block) -> Key {
    (block.process, block.heap, block.address_avma)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_cut_is_what_was_live_when_it_was_made(steps in proptest::collection::vec(step(), 1..400)) {
        let mut ledger = Ledger::new();
        let mut expected: Option<BTreeMap<Key, Block>> = None;
        let mut shown: Vec<Block> = Vec::new();
        let steps = steps.into_iter().chain([Step::Slice { group_count: usize::MAX }]);
        for (time_ns, step) in steps.enumerate() {
            match step {
                Step::Event { action, process, heap } => {
                    let event = Event { time_ns: time_ns as u64, thread: ThreadIndex(0), heap: HeapId(heap), action };
                    ledger.apply(&event, ProcessIndex(process), &mut ());
                }
                Step::Cut => {
                    expected = Some(live(&ledger));
                    shown.clear();
                    ledger.begin_cut();
                }
                Step::Slice { group_count } => {
                    let is_done = ledger.cut_slice(group_count, |block| shown.push(*block));
                    if is_done && let Some(expected) = expected.take() {
                        let found: BTreeMap<Key, Block> = shown.iter().map(|block| (key(block), *block)).collect();
                        prop_assert_eq!(found.len(), shown.len(), "a block was shown twice");
                        prop_assert_eq!(found, expected);
                    }
                }
                Step::Drop { process } => ledger.drop_process(ProcessIndex(process)),
            }
        }
        prop_assert!(expected.is_none(), "the last slice takes all");
    }
}

#[test]
fn a_slice_without_a_cut_shows_nothing() {
    let mut ledger = Ledger::new();
    let action =
        Action::Alloc { address_avma: 16, size_bytes: 1, stack: StackIndex(0), is_moved_realloc: false };
    let event = Event { time_ns: 1, thread: ThreadIndex(0), heap: HeapId(0), action };
    ledger.apply(&event, ProcessIndex(0), &mut ());
    assert!(ledger.cut_slice(usize::MAX, |block| panic!("{block:?}")));
}
