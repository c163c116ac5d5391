//! Tests of the order of events: those of many threads come out by time, each once, for every
//! interleaving.

use heapr_trace::Action;
use heapr_wire::{RecordKind, STACK_BITS, address_word};
use proptest::prelude::*;

use crate::producer::{Producer, ProducerThread, join, live_tid, ticks};
use crate::recording::{pass_watermark, start, stop};

/// Step of a simulated run.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// Thread allocates.
    Alloc(usize),
    /// Thread ends; its next allocation is that of a new thread with the same id.
    End(usize),
    /// Recorder makes a round, with or without a wait for the watermark to pass what was written.
    Round { waits: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0_usize..5).prop_map(Step::Alloc),
        1 => (0_usize..5).prop_map(Step::End),
        2 => any::<bool>().prop_map(|waits| Step::Round { waits }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_keep_their_order_over_threads_and_rounds(steps in proptest::collection::vec(step(), 1..1500)) {
        let (mut session, directory) = start(|_| ());
        let pool = join(&session);
        let mut process = Producer::exec(&pool, None);
        let mut threads: [Option<ProducerThread<'_>>; 5] = [const { None }; 5];
        let mut expected = Vec::new();
        for step in steps {
            match step {
                Step::Alloc(number) => {
                    let thread = threads[number].get_or_insert_with(|| process.thread(live_tid(number)));
                    let address = 0x1000 + expected.len() as u64 * 16;
                    let node = process.node(0, address);
                    while !thread.alloc(address, number as u32 + 1, node) {
                        pass_watermark();
                        session.step_now();
                    }
                    expected.push((live_tid(number), address, number as u64 + 1));
                }
                Step::End(number) => {
                    if let Some(thread) = threads[number].take() {
                        thread.finish();
                    }
                }
                Step::Round { waits } => {
                    if waits {
                        pass_watermark();
                    }
                    session.step_now();
                }
            }
        }
        let recorded = stop(session, directory);
        let found: Vec<_> = recorded.events.iter().map(|event| {
            let Action::Alloc { address_avma, size_bytes, stack, .. } = event.action else { panic!("{event:?}") };
            // Each block has a stack of one frame at its own address, below that of malloc.
            let stacks = recorded.trace.stacks();
            let node = stacks.node(stacks.parent(stack)).expect("a stack");
            assert_eq!(node.return_address_avma, address_avma);
            (recorded.trace.threads()[event.thread.0 as usize].tid, address_avma, size_bytes)
        }).collect();
        prop_assert_eq!(found, expected);
        prop_assert!(recorded.events.is_sorted_by_key(|event| event.time_ns));
        prop_assert_eq!(recorded.summary.statistics.loss, heapr_trace::Loss::default());
    }
}

#[test]
fn a_thread_in_the_middle_of_an_event_holds_later_events_back() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let (mut slow, mut fast) = (process.thread(live_tid(1)), process.thread(live_tid(2)));
    assert!(slow.alloc(0x100, 1, 0));
    assert!(slow.begin(3));
    let early = ticks(&pool);
    assert!(fast.alloc(0x300, 3, 0));
    pass_watermark();
    session.step_now();
    slow.end(RecordKind::Alloc, early, &[address_word(0, 0x200), 2 << STACK_BITS]);
    pass_watermark();
    session.step_now();
    let recorded = stop(session, directory);
    let sizes: Vec<_> = recorded.events.iter().map(|event| size_of_alloc(event.action)).collect();
    assert_eq!(sizes, [1, 2, 3]);
    assert_eq!(recorded.summary.statistics.loss.events_late, 0);
}

#[test]
fn a_free_and_the_alloc_that_reuses_its_block_at_the_same_tick_stay_in_order() {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let (mut one, mut other) = (process.thread(live_tid(1)), process.thread(live_tid(2)));
    assert!(one.alloc(0x100, 1, 0));
    let tick = ticks(&pool);
    assert!(other.begin(3));
    other.end(RecordKind::Alloc, tick, &[address_word(0, 0x100), 2 << STACK_BITS]);
    assert!(one.begin(2));
    one.end(RecordKind::Free, tick, &[address_word(0, 0x100)]);
    pass_watermark();
    session.step_now();
    let recorded = stop(session, directory);
    assert_eq!(recorded.summary.summary.totals.implied_frees, 0);
    assert_eq!(recorded.summary.summary.totals.outstanding_count, 1);
}

/// Returns the expected order of streams of (tick, is a free): by time, and at equal times a free
/// before an allocation. Among equal ones the stream that was read last comes first, then the
/// earlier ones.
fn in_order(streams: &[Vec<(u64, bool)>]) -> Vec<(usize, usize)> {
    let order =
        |stream: usize, place: usize| streams[stream].get(place).map(|&(tick, is_free)| (tick, !is_free));
    let mut places = vec![0; streams.len()];
    let mut waiting: Vec<usize> = (0..streams.len()).filter(|&stream| order(stream, 0).is_some()).collect();
    waiting.sort_by_key(|&stream| order(stream, 0));
    let mut taken = Vec::new();
    while !waiting.is_empty() {
        let stream = waiting.remove(0);
        taken.push((stream, places[stream]));
        places[stream] += 1;
        let Some(next) = order(stream, places[stream]) else { continue };
        let behind = waiting.iter().take_while(|&&other| order(other, places[other]) < Some(next)).count();
        waiting.insert(behind, stream);
    }
    taken
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_happens_at_the_same_ticks_comes_in_a_known_order(
        steps in proptest::collection::vec((0_usize..4, 0_u64..3, any::<bool>(), any::<bool>()), 1..400),
        thread_count in 1_usize..5,
    ) {
        let (mut session, directory) = start(|_| ());
        let pool = join(&session);
        let process = Producer::exec(&pool, None);
        let mut threads: Vec<_> = (0..thread_count).map(|number| process.thread(live_tid(number))).collect();
        let mut streams = vec![Vec::new(); thread_count];
        let begin = ticks(&pool);
        for (number, later, is_free, may_be_short) in steps {
            let number = number % thread_count;
            // Few ticks for many events, and each thread's in order; the first ones differ.
            let last = streams[number].last().map(|&(tick, _)| tick + later / 2);
            let tick = last.unwrap_or(begin + number as u64);
            let address = (number as u64) << 32 | (streams[number].len() as u64 + 1) << 4;
            let (kind, packed) = if is_free { (RecordKind::Free, &[][..]) } else { (RecordKind::Alloc, &[1 << STACK_BITS][..]) };
            prop_assert!(threads[number].begin(3));
            if may_be_short {
                threads[number].end_plain(kind, tick, address, packed);
            } else {
                threads[number].end(kind, tick, &[&[address_word(0, address)], packed].concat());
            }
            streams[number].push((tick, is_free));
        }
        pass_watermark();
        session.step_now();
        let recorded = stop(session, directory);
        let found: Vec<_> = recorded.events.iter().map(|event| {
            let (Action::Alloc { address_avma, .. } | Action::Free { address_avma, .. }) = event.action else {
                panic!("{event:?}")
            };
            ((address_avma >> 32) as usize, (address_avma as u32 >> 4) as usize - 1)
        }).collect();
        prop_assert_eq!(found, in_order(&streams));
    }
}

fn size_of_alloc(action: Action) -> u64 {
    match action {
        Action::Alloc { size_bytes, .. } => size_bytes,
        other => panic!("{other:?} is no allocation"),
    }
}
