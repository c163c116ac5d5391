//! Events that are hard for the encoder are decoded unchanged.

use proptest::prelude::*;

use super::*;

fn decoded(columns: &EventColumns) -> Vec<Event> {
    let streams = columns.streams().map(<[u8]>::to_vec);
    let mut events = Vec::new();
    let mut decoder = EventDecoder::new();
    decoder.decode(&streams, columns.first_ns, columns.count, usize::MAX, &mut events).unwrap();
    events
}

/// Pushes `together` events at a time.
fn encoded(columns: &mut EventColumns, events: &[Event], together: usize) {
    for events in events.chunks(together) {
        columns.push_all(&mut events.iter(), usize::MAX);
    }
}

/// Few addresses, so that they recur. Some differ in their high bits only, some have all 64 bits.
fn address() -> impl Strategy<Value = u64> {
    let near = (0_u64..24).prop_map(|number| 0x7f12_3456_0000 + number * 16);
    let odd = 0x5555_0000_u64..0x5555_0008;
    let high = (0_u32..64).prop_map(|bit| 0x5555_0000 | 1 << bit);
    let edge = prop_oneof![
        Just(0),
        Just(1),
        Just((1 << 55) - 1),
        Just(1 << 55),
        Just((1 << 55) + 16),
        Just(u64::MAX)
    ];
    prop_oneof![8 => near, 2 => odd, 1 => high, 1 => edge, 1 => any::<u64>()]
}

/// Few sizes: the borders of classes, and some that differ in their high bits only.
fn size() -> impl Strategy<Value = u64> {
    let border =
        prop_oneof![Just(8), Just(9), Just(24), Just(25), Just(40), Just(1032), Just(1033), Just(1034)];
    let high = (0_u32..64).prop_map(|bit| 24 | 1 << bit);
    let edge =
        prop_oneof![Just(0), Just(u64::from(u32::MAX)), Just(1 << 32), Just(u64::MAX), Just(u64::MAX - 22)];
    prop_oneof![4 => border, 1 => high, 1 => edge]
}

fn event() -> impl Strategy<Value = Event> {
    let stack = prop_oneof![4 => 0_u32..3, 1 => Just(u32::MAX - 1), 1 => any::<u32>()].prop_map(StackIndex);
    // The decoder reads a stack that is not below 2^32 - 1 as a lost one.
    let stack = stack.prop_filter("a lost one", |stack| stack.0 != u32::MAX);
    let action = (0..8_u8, address(), address(), size(), stack, any::<bool>());
    let action = action.prop_map(|(kind, old, address_avma, size_bytes, stack, flag)| match kind {
        0..3 => Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: flag },
        3..5 => Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: flag },
        5 => Action::Free { address_avma, stack, is_moved_realloc: flag },
        6 => {
            let old_address_avma = if flag { address_avma } else { old };
            Action::Realloc { old_address_avma, address_avma, size_bytes, stack }
        }
        _ => Action::Failed { size_bytes, stack },
    });
    let time_ns = prop_oneof![4 => 0_u64..300, 1 => any::<u64>()];
    let thread = prop_oneof![4 => 0_u32..2, 1 => 0..THREADS_MAX].prop_map(ThreadIndex);
    let heap = prop_oneof![4 => Just(0_u8), 1 => any::<u8>()].prop_map(HeapId);
    (time_ns, thread, heap, action).prop_map(|(time_ns, thread, heap, action)| Event {
        time_ns,
        thread,
        heap,
        action,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn hard_events_come_back(mut events in proptest::collection::vec(event(), 1..600), together in 1_usize..300) {
        let mut time_ns = 0_u64;
        for event in &mut events {
            time_ns = time_ns.saturating_add(event.time_ns);
            event.time_ns = time_ns;
        }
        let mut columns = EventColumns::new();
        encoded(&mut columns, &events, together);
        prop_assert_eq!(decoded(&columns), &events[..]);
        // The next chunk begins anew; times do not decrease.
        columns.clear();
        encoded(&mut columns, &events, 64);
        events.iter_mut().for_each(|event| event.time_ns = time_ns);
        prop_assert_eq!(decoded(&columns), events);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn both_ways_to_take_events_apart_make_the_same_bytes(events in proptest::collection::vec(event(), 1..900)) {
        let (mut guessing, mut waiting) = (EventColumns::new(), EventColumns::new());
        // The second chunk begins in tables that were used.
        for _ in 0..2 {
            guessing.clear();
            waiting.clear();
            guessing.push_all_in_way::<false>(&events);
            waiting.push_all_in_way::<true>(&events);
            prop_assert_eq!(guessing.streams(), waiting.streams());
            let is_same = |(read, event): (&Event, &Event)| read.action == event.action && read.thread == event.thread;
            prop_assert!(decoded(&waiting).iter().zip(&events).all(is_same));
        }
    }
}

fn alloc(address_avma: u64, size_bytes: u64, stack: u32) -> Event {
    let stack = StackIndex(stack);
    let action = Action::Alloc { address_avma, size_bytes, stack, is_moved_realloc: false };
    Event { time_ns: 0, thread: ThreadIndex(0), heap: HeapId::MALLOC, action }
}

fn free(address_avma: u64) -> Event {
    let action = Action::Free { address_avma, stack: StackIndex::EMPTY, is_moved_realloc: false };
    Event { action, ..alloc(0, 0, 0) }
}

#[test]
fn a_free_of_an_early_block_counts_back_over_the_whole_chunk() {
    // One address again and again, so that the first block is not forgotten.
    let middle = (0..EVENTS_PER_CHUNK - 2).map(|_| alloc(0x7000, 2000, 1));
    let events: Vec<Event> = [alloc(0x5000, 24, 1)].into_iter().chain(middle).chain([free(0x5000)]).collect();
    let mut columns = EventColumns::new();
    encoded(&mut columns, &events, 256);
    assert_eq!(columns.streams()[4], [0xfe, 0xff, 0x03]);
    assert_eq!(decoded(&columns), events);
}

#[test]
fn a_pair_that_the_writer_cannot_keep_takes_the_place_of_one_that_it_keeps() {
    let place = |size_bytes: &u64| site_place(7, *size_bytes);
    let long = (1_u64 << 32..).find(|long| place(long) == place(&24)).unwrap();
    let events = [24, 24, long, 24, 24, long, long, 24].map(|size_bytes| alloc(0x5000, size_bytes, 7));
    let mut columns = EventColumns::new();
    encoded(&mut columns, &events, 3);
    // Known sites: the second 24 of each two.
    assert_eq!(columns.streams()[5].len(), 2 * 2);
    assert_eq!(decoded(&columns), events);
}

#[test]
fn a_block_is_named_by_its_address_if_that_has_too_many_bits() {
    // Both are equal in the lower 55 bits.
    let (short, long) = (0x5000, 0x5000 | 1 << 55);
    let events = [alloc(short, 24, 1), free(long), alloc(long, 24, 1), free(short), free(long)];
    let mut columns = EventColumns::new();
    encoded(&mut columns, &events, 5);
    assert!(columns.streams()[4].is_empty());
    assert_eq!(decoded(&columns), events);
}
