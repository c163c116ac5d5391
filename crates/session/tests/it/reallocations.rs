//! Reallocations: two records become one event, or two halves when another thread was given the old address.

use heapr_trace::Action;

use crate::producer::{Producer, ProducerThread, join, live_tid};
use crate::recording::{Recorded, pass_watermark, start, stop};

fn record(script: impl FnOnce(&mut ProducerThread<'_>, &mut ProducerThread<'_>)) -> Recorded {
    let (mut session, directory) = start(|_| ());
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
fn a_thread_that_ends_inside_realloc_leaves_the_old_block_live() {
    let recorded = record(|one, _| assert!(one.alloc(0x100, 10, 0) && one.prepare(0x100)));
    assert_eq!(recorded.summary.summary.totals.outstanding_bytes, 10);
}
