//! Tests of reallocations: two records become one event, or two halves when another thread was
//! given the old address.

use std::collections::BTreeMap;

use heapr_trace::Action;
use heapr_wire::{HEAP_MMAP, RecordKind, STACK_BITS, address_word};
use proptest::prelude::*;

use crate::producer::{Producer, ProducerThread, join, live_tid};
use crate::recording::{Recorded, pass_watermark, start, stop};

fn record(script: impl FnOnce(&mut ProducerThread<'_>, &mut ProducerThread<'_>)) -> Recorded {
    let (mut session, directory) = start(|properties| properties.mmap = true);
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let (mut one, mut other) = (process.thread(live_tid(1)), process.thread(live_tid(2)));
    script(&mut one, &mut other);
    pass_watermark();
    session.step_now();
    stop(session, directory)
}

fn actions(recorded: &Recorded) -> Vec<Action> {
    recorded.events.iter().map(|event| event.action).collect()
}

#[test]
fn a_realloc_is_one_event_moved_or_in_place() {
    let recorded = record(|one, _| {
        assert!(one.alloc(0x100, 10, 0) && one.prepare(0x100) && one.commit(0x100, 20));
        assert!(one.prepare(0x100) && one.commit(0x900, 30));
    });
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.alloc_count, totals.realloc_count, totals.outstanding_bytes), (3, 2, 30));
    assert!(matches!(
        actions(&recorded)[2],
        Action::Realloc { old_address_avma: 0x100, address_avma: 0x900, size_bytes: 30, .. }
    ));
}

#[test]
fn realloc_failure_keeps_old_block_live() {
    let recorded = record(|one, _| {
        assert!(one.alloc(0x100, 10, 0) && one.prepare(0x100) && one.abort(0x100, 1 << 60));
    });
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.outstanding_bytes, totals.failed_count, totals.free_count), (10, 1, 0));
}

#[test]
fn a_realloc_to_nothing_is_a_free() {
    let recorded = record(|one, _| {
        assert!(one.alloc(0x100, 10, 0) && one.prepare(0x100) && one.commit(0, 0));
    });
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.outstanding_count, totals.free_count, totals.realloc_count), (0, 1, 0));
}

#[test]
fn an_address_given_away_during_a_realloc_splits_it() {
    let recorded = record(|one, other| {
        assert!(one.alloc(0x100, 10, 0) && one.prepare(0x100));
        assert!(other.alloc(0x100, 5, 0));
        assert!(one.commit(0x900, 20));
    });
    let actions = actions(&recorded);
    assert!(
        matches!(actions[1], Action::Free { address_avma: 0x100, is_moved_realloc: true, .. }),
        "{actions:?}"
    );
    assert!(matches!(
        actions[2],
        Action::Alloc { address_avma: 0x100, size_bytes: 5, is_moved_realloc: false, .. }
    ));
    assert!(matches!(
        actions[3],
        Action::Alloc { address_avma: 0x900, size_bytes: 20, is_moved_realloc: true, .. }
    ));
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.outstanding_bytes, totals.realloc_count, totals.implied_frees), (25, 1, 0));
}

#[test]
fn two_reallocs_may_exchange_their_addresses() {
    let recorded = record(|one, other| {
        assert!(one.alloc(0x100, 1, 0) && other.alloc(0x200, 2, 0));
        assert!(one.prepare(0x100) && other.prepare(0x200));
        assert!(one.commit(0x200, 10) && other.commit(0x100, 20));
    });
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.outstanding_count, totals.outstanding_bytes), (2, 30), "{:?}", actions(&recorded));
    assert_eq!((totals.implied_frees, totals.unmatched_frees), (0, 0), "{:?}", actions(&recorded));
}

#[test]
fn a_realloc_whose_block_was_given_away_may_move_to_where_another_has_just_left() {
    let (mut session, directory) = start(|properties| properties.mmap = true);
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let [mut one, mut other, mut third] = [1, 2, 3].map(|number| process.thread(live_tid(number)));
    assert!(one.alloc(0x100, 1, 0) && other.alloc(0x200, 2, 0));
    // `other` leaves 0x200, `one` leaves 0x100 for it, and `third` is given 0x100; `one` publishes
    // its result first.
    assert!(other.prepare(0x200) && one.prepare(0x100) && third.alloc(0x100, 3, 0));
    assert!(one.commit(0x200, 10) && other.commit(0x300, 20));
    assert!(one.free(0x200));
    pass_watermark();
    session.step_now();
    let recorded = stop(session, directory);
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.outstanding_count, totals.outstanding_bytes), (2, 23), "{:?}", actions(&recorded));
    assert_eq!((totals.implied_frees, totals.unmatched_frees), (0, 0), "{:?}", actions(&recorded));
}

#[test]
fn a_mapping_that_has_moved_is_not_freed_again_by_what_is_mapped_over_its_old_place() {
    let recorded = record(|one, other| {
        let place = |address| address_word(HEAP_MMAP, address);
        let size = |bytes: u64| bytes << STACK_BITS;
        assert!(one.write(RecordKind::Alloc, &[place(0x10000), size(0x2000)]));
        assert!(one.write(RecordKind::ReallocPrepare, &[place(0x10000)]));
        assert!(other.write(RecordKind::Alloc, &[place(0xf000), size(0x2000)]));
        assert!(one.write(RecordKind::ReallocCommit, &[place(0x50000), 0x4000, 0]));
        // Unmapped in two parts: the new position is known.
        assert!(other.write(RecordKind::Unmap, &[place(0x52000), 0x2000]));
        assert!(other.write(RecordKind::Unmap, &[place(0x50000), 0x2000]));
    });
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.outstanding_count, totals.outstanding_bytes), (1, 0x2000), "{:?}", actions(&recorded));
    assert_eq!((totals.implied_frees, totals.unmatched_frees), (0, 0), "{:?}", actions(&recorded));
}

#[test]
fn an_allocator_that_moves_a_mapping_within_a_realloc_has_moved_the_block() {
    let recorded = record(|one, _| {
        let place = |address| address_word(HEAP_MMAP, address);
        assert!(one.write(RecordKind::Alloc, &[place(0x10000), 0x2000 << STACK_BITS]));
        assert!(one.alloc(0x100, 10, 0) && one.prepare(0x100));
        // The allocator tries to move the mapping, at first in vain.
        assert!(one.write(RecordKind::ReallocPrepare, &[place(0x10000)]));
        assert!(one.write(RecordKind::ReallocAbort, &[place(0x10000), 0x2000]));
        assert!(one.write(RecordKind::ReallocPrepare, &[place(0x10000)]));
        assert!(one.write(RecordKind::ReallocCommit, &[place(0x50000), 0x4000, 0]));
        assert!(one.commit(0x900, 20) && one.free(0x900));
        assert!(one.write(RecordKind::Unmap, &[place(0x50000), 0x4000]));
    });
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.outstanding_count, totals.unmatched_frees), (0, 0), "{:?}", actions(&recorded));
}

/// State of a thread of the model.
#[derive(Debug, Clone, Copy)]
enum Doing {
    Nothing,
    /// Between the two records of a realloc of a block, before and after the allocator has done it.
    Realloc {
        from: u64,
        done: Option<u64>,
    },
}

/// Addresses of the model's allocator: few, so that they are soon given again.
const ADDRESSES: std::ops::Range<u64> = 1..8;

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    /// Simulates an allocator and its threads, whose records are written around its work, in every
    /// possible order.
    #[test]
    fn whatever_the_threads_do_every_block_is_accounted_for(
        steps in proptest::collection::vec((0_usize..4, any::<u8>()), 1..400),
    ) {
        let (mut session, directory) = start(|properties| properties.mmap = true);
        let pool = join(&session);
        let process = Producer::exec(&pool, None);
        let mut threads: Vec<_> = (0..4).map(|number| (process.thread(live_tid(number)), Doing::Nothing)).collect();
        // Blocks that the allocator has given out, and those that no thread is reallocating:
        // address -> size.
        let mut given: BTreeMap<u64, u64> = BTreeMap::new();
        let mut idle: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut allocs, mut reallocs, mut frees) = (0, 0, 0);
        for (place, (number, choice)) in steps.into_iter().enumerate() {
            let size = place as u64 + 1;
            let (thread, doing) = &mut threads[number];
            let choice = usize::from(choice);
            let unused: Vec<u64> = ADDRESSES.filter(|address| !given.contains_key(address)).collect();
            let chosen = idle.keys().nth(choice / 4 % idle.len().max(1)).copied();
            match (*doing, choice % 4) {
                (Doing::Nothing, 0 | 1) if !unused.is_empty() => {
                    let address = unused[choice / 4 % unused.len()];
                    given.insert(address, size);
                    idle.insert(address, size);
                    prop_assert!(thread.alloc(address << 8, size as u32, 0));
                    allocs += 1;
                }
                (Doing::Nothing, 2) => if let Some(address) = chosen {
                    prop_assert!(thread.free(address << 8));
                    given.remove(&address);
                    idle.remove(&address);
                    frees += 1;
                },
                (Doing::Nothing, _) => if let Some(from) = chosen {
                    prop_assert!(thread.prepare(from << 8));
                    idle.remove(&from);
                    *doing = Doing::Realloc { from, done: None };
                },
                (Doing::Realloc { from, done: None }, _) => {
                    // In place if no address is unused; else mostly elsewhere.
                    let to = if choice % 8 == 0 { None } else { unused.get(choice / 8 % unused.len().max(1)) };
                    let to = to.copied().unwrap_or(from);
                    given.remove(&from);
                    given.insert(to, 0);
                    *doing = Doing::Realloc { from, done: Some(to) };
                }
                (Doing::Realloc { done: Some(to), .. }, _) => {
                    prop_assert!(thread.commit(to << 8, size));
                    given.insert(to, size);
                    idle.insert(to, size);
                    *doing = Doing::Nothing;
                    reallocs += 1;
                }
            }
        }
        for (thread, doing) in &mut threads {
            if let Doing::Realloc { from, done } = *doing {
                let to = done.unwrap_or(from);
                prop_assert!(thread.commit(to << 8, 7));
                idle.insert(to, 7);
                reallocs += 1;
            }
        }
        pass_watermark();
        session.step_now();
        drop(threads);
        let recorded = stop(session, directory);
        let totals = recorded.summary.summary.totals;
        prop_assert_eq!((totals.implied_frees, totals.unmatched_frees), (0, 0), "{:?}", actions(&recorded));
        prop_assert_eq!(totals.outstanding_bytes, idle.values().sum::<u64>());
        prop_assert_eq!(totals.outstanding_count, idle.len() as u64);
        prop_assert_eq!((totals.realloc_count, totals.free_count), (reallocs, frees + reallocs));
        prop_assert_eq!(totals.alloc_count, allocs + reallocs);
    }
}

#[test]
fn a_thread_that_ends_inside_realloc_leaves_the_old_block_live() {
    let recorded = record(|one, _| assert!(one.alloc(0x100, 10, 0) && one.prepare(0x100)));
    assert_eq!(recorded.summary.summary.totals.outstanding_bytes, 10);
}
