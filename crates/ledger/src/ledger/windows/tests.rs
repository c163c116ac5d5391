use heapr_trace::{HeapId, ThreadIndex};

use super::*;
use crate::SummaryBuilder;

const BLOCK_COUNT: u64 = 20_000;

/// Frees and allocations in turn, in stretches of neighbours and of random blocks, of one process
/// or two.
fn events(stretch_length: u64, process_count: u64) -> Vec<(Event, ProcessIndex)> {
    let mut random = 5_u64;
    let mut next = |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut events = Vec::new();
    let mut push = |number: u64, is_alloc: bool, size_bytes: u64| {
        // The blocks of each process lie 100 KiB apart, or side by side.
        let address_avma = 0x7000_0000_0000
            + (number % 2) * 0x100_0000_0000
            + number * if number.is_multiple_of(2) { 48 } else { 100 << 10 };
        let stack = StackIndex(1 + (number % 700) as u32);
        let action = if is_alloc {
            Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false }
        } else {
            Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false }
        };
        let process = ProcessIndex((number / 7 % process_count) as u32);
        let thread = ThreadIndex(process.0);
        events.push((Event { time_ns: events.len() as u64, thread, heap: HeapId::MALLOC, action }, process));
    };
    (0..BLOCK_COUNT).for_each(|number| push(number, true, number % 300));
    for step in 0..40_000 {
        let is_near = (step / stretch_length).is_multiple_of(2);
        let number = if is_near { step % 500 * 2 } else { next(BLOCK_COUNT / 2) * 2 + 1 };
        push(number, false, 0);
        push(number, true, next(400));
    }
    events
}

#[test]
fn windows_of_near_and_of_far_blocks_come_to_what_events_one_by_one_come_to() {
    for (stretch_length, process_count) in [(200, 1), (1_500, 1), (1_500, 2), (20_000, 2)] {
        let events = events(stretch_length, process_count);
        let (mut one_by_one, mut expected) = (Ledger::new(), SummaryBuilder::new());
        for (event, process) in &events {
            one_by_one.apply(event, *process, &mut expected);
        }
        let (mut ledger, mut summary) = (Ledger::new(), SummaryBuilder::new());
        let (mut ahead_count, mut at_once_count) = (0, 0);
        for window in events.chunks(WINDOW) {
            let is_ahead = ledger.ahead_left > 0 && !ledger.blocks.is_small();
            ahead_count += usize::from(is_ahead);
            at_once_count += usize::from(!is_ahead);
            ledger.apply_all(window, &mut summary);
        }
        assert!(ahead_count > 20 && at_once_count > 20, "{ahead_count} ahead, {at_once_count} at once");
        assert_eq!(summary.totals(), expected.totals());
        assert_eq!(summary.finish(), expected.finish());
        assert!(ledger.sorted_blocks().eq(one_by_one.sorted_blocks()));
    }
}
