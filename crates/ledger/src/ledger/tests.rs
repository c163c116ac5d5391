use heapr_trace::{
    Action, Block, BlockEstimate, Event, HeapId, ProcessIndex, ProcessOrigin, StackIndex, ThreadIndex,
};
use proptest::prelude::*;

use super::{Death, Ledger, Observer};

/// Records each call as text.
#[derive(Debug, Default, PartialEq, Eq)]
struct Diary(Vec<String>);

impl Observer for Diary {
    fn born(&mut self, block: &Block) {
        self.0.push(format!("born {block:?}"));
    }

    fn died(&mut self, block: &Block, death: &Death) {
        self.0.push(format!("died {block:?} {death:?}"));
    }

    fn failed(&mut self, event: &Event, process: ProcessIndex, size_bytes: u64, stack: StackIndex) {
        self.0.push(format!("failed {event:?} {process:?} {size_bytes} {stack:?}"));
    }

    fn unmatched_free(&mut self, event: &Event, process: ProcessIndex, is_inherited: bool) {
        self.0.push(format!("unmatched {event:?} {process:?} {is_inherited}"));
    }
}

/// Few addresses, so that most blocks are short-lived. Includes lost frees, frees of unknown
/// addresses, moved blocks, three heaps and two processes.
fn event() -> impl Strategy<Value = (Event, ProcessIndex)> {
    (0..100_u32, 0..12_u64, 0..12_u64, 0..20_u32).prop_map(|(chance, one, other, whose)| {
        let address = |place: u64| 0x7f00_0000_0000 + place * 48;
        let stack = StackIndex(chance % 7);
        let action = match chance {
            0..42 => Action::Alloc {
                address_avma: address(one),
                size_bytes: u64::from(chance) * 8,
                stack,
                is_moved_realloc: chance.is_multiple_of(9),
            },
            42..88 => Action::Free {
                address_avma: address(one),
                stack: StackIndex(chance % 2),
                is_moved_realloc: chance.is_multiple_of(7),
            },
            88..96 => Action::Realloc {
                old_address_avma: address(one),
                address_avma: address(other),
                size_bytes: other,
                stack,
            },
            _ => Action::Failed { size_bytes: one, stack },
        };
        let heap = match whose % 10 {
            3 => HeapId::MMAP,
            6 => HeapId(5),
            _ => HeapId::MALLOC,
        };
        let process = ProcessIndex(u32::from(whose % 7 == 5));
        (Event { time_ns: 0, thread: ThreadIndex(whose % 3), heap, action }, process)
    })
}

/// A ledger with enough blocks for look-ups ahead and a search for short lives.
fn large() -> Ledger {
    let mut ledger = Ledger::new();
    ledger.add_process(ProcessIndex(1), ProcessOrigin::Fork { parent: ProcessIndex(0) }, 0);
    ledger.load((0..9_000).map(|number| Block {
        process: ProcessIndex(0),
        heap: HeapId::MALLOC,
        address_avma: 0x5500_0000_0000 + number * 64,
        size_bytes: number,
        stack: StackIndex(1),
        thread: ThreadIndex(0),
        alloc_ns: 0,
        is_realloc: false,
    }));
    assert!(!ledger.blocks.is_small());
    ledger
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn events_together_tell_what_events_one_by_one_tell(
        mut events in prop::collection::vec(event(), 0..900),
        together in 1..600_usize,
        cut_before in 0..4_usize,
    ) {
        for (number, (event, _)) in events.iter_mut().enumerate() {
            event.time_ns = number as u64;
        }
        let (mut ledger, mut diary) = (large(), Diary::default());
        for (number, (event, process)) in events.iter().enumerate() {
            if number == cut_before * together {
                ledger.begin_cut();
            }
            ledger.apply(event, *process, &mut diary);
        }
        let (mut other_ledger, mut other_diary) = (large(), Diary::default());
        for (number, events) in events.chunks(together).enumerate() {
            if number == cut_before {
                other_ledger.begin_cut();
            }
            other_ledger.apply_all(events, &mut other_diary);
        }
        prop_assert_eq!(diary, other_diary);
        prop_assert!(ledger.sorted_blocks().eq(other_ledger.sorted_blocks()));
        let cuts = [&mut ledger, &mut other_ledger].map(|ledger| {
            let mut cut = Vec::new();
            ledger.cut_slice(usize::MAX, |block| cut.push(*block));
            cut.sort_by_key(|block| (block.process, block.heap, block.address_avma));
            cut
        });
        prop_assert_eq!(&cuts[0], &cuts[1]);
        // The last allocations decide about later events.
        prop_assert_eq!(ledger.last_alloc, other_ledger.last_alloc);
    }
}

#[test]
fn a_heap_frees_what_it_had_from_malloc_before_it_was_known() {
    let event = |heap, action| Event { time_ns: 7, thread: ThreadIndex(0), heap, action };
    let alloc = |address_avma| Action::Alloc {
        address_avma,
        size_bytes: 744,
        stack: StackIndex(3),
        is_moved_realloc: false,
    };
    let free =
        |address_avma| Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false };
    let own = HeapId(5);
    let told = |events: &[Event]| {
        let (mut ledger, mut diary) = (Ledger::new(), Diary::default());
        events.iter().for_each(|event| ledger.apply(event, ProcessIndex(0), &mut diary));
        (diary.0, ledger.live_count())
    };
    let (diary, live) = told(&[event(HeapId::MALLOC, alloc(64)), event(own, free(64)), event(own, free(64))]);
    assert!(diary[1].starts_with("died") && diary[2].starts_with("unmatched"), "{diary:?}");
    assert_eq!(live, 0);
    let grown =
        Action::Realloc { old_address_avma: 64, address_avma: 64, size_bytes: 800, stack: StackIndex(4) };
    let (diary, live) = told(&[event(HeapId::MALLOC, alloc(64)), event(own, grown), event(own, free(64))]);
    assert!(diary[1].starts_with("died") && diary[1].contains("Realloc"), "{diary:?}");
    assert_eq!((diary.len(), live), (4, 0));
    // A free of its own block does not touch malloc's, and a mapping is not malloc's.
    let both = [event(HeapId::MALLOC, alloc(64)), event(own, alloc(64)), event(own, free(64))];
    assert_eq!(told(&both).1, 1);
    assert_eq!(told(&[event(HeapId::MALLOC, alloc(64)), event(HeapId::MMAP, free(64))]).1, 1);
}

#[test]
fn what_comes_of_a_process_after_its_end_counts_nothing_twice() {
    let (mut ledger, mut summary) = (Ledger::new(), crate::SummaryBuilder::new());
    ledger.keep_left();
    let event = |time_ns: u64, action: Action| Event {
        time_ns,
        thread: ThreadIndex(0),
        heap: HeapId::MALLOC,
        action,
    };
    let (address_avma, stack) = (0x1000, StackIndex(1));
    let born = Action::Alloc { address_avma, size_bytes: 100, stack, is_moved_realloc: false };
    let freed = Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false };
    ledger.apply(&event(1, born), ProcessIndex(0), &mut summary);
    ledger.end_process(ProcessIndex(0), 2, &mut summary);
    ledger.begin_cut();
    let mut shown = Vec::new();
    assert!(ledger.cut_slice(usize::MAX, |block| shown.push(block.size_bytes)));
    assert_eq!((shown, ledger.live_count(), summary.live()), (vec![100], 0, BlockEstimate::default()));
    ledger.apply(&event(3, freed), ProcessIndex(0), &mut summary);
    let totals = summary.totals();
    assert_eq!((totals.outstanding_bytes, totals.outstanding_count, totals.unmatched_frees), (100, 1, 1));
    assert_eq!((totals.peak_bytes, summary.live()), (100, BlockEstimate::default()));
    // Another process begins: the peak counts only living blocks.
    ledger.apply(&event(4, born), ProcessIndex(1), &mut summary);
    assert_eq!((summary.totals().peak_bytes, summary.totals().outstanding_bytes), (100, 200));
    ledger.forget_left(ProcessIndex(0));
    ledger.begin_cut();
    let mut count = 0;
    ledger.cut_slice(usize::MAX, |_| count += 1);
    assert_eq!(count, 1);
}
