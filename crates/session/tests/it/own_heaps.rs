//! Tests of heaps that a program creates: their names, and that all blocks of a heap are freed when
//! it is destroyed.

use heapr_trace::{Action, HeapId};
use heapr_wire::{RecordKind, STACK_BITS, address_word};

use crate::producer::{Producer, ProducerThread, join, live_tid};
use crate::recording::{Recorded, pass_watermark, start, stop};

fn create(thread: &mut ProducerThread<'_>, heap: u8, name: &str) {
    for (part, bytes) in name.as_bytes().chunks(16).enumerate() {
        let mut words = [0_u64; 2];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(padded);
        }
        let rest = [address_word(heap, part as u64), words[0], words[1]];
        assert!(thread.write(RecordKind::HeapName, &rest));
    }
    assert!(thread.write(RecordKind::HeapCreate, &[address_word(heap, 77), 0]));
}

fn destroy(thread: &mut ProducerThread<'_>, heap: u8) {
    assert!(thread.write(RecordKind::HeapDestroy, &[address_word(heap, 77), 0]));
}

fn alloc(thread: &mut ProducerThread<'_>, heap: u8, address: u64, size: u64) {
    assert!(thread.write(RecordKind::Alloc, &[address_word(heap, address), size << STACK_BITS]));
}

fn record(script: impl FnOnce(&mut ProducerThread<'_>)) -> Recorded {
    let (mut session, directory) = start(|_| ());
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    let mut thread = process.thread(live_tid(1));
    script(&mut thread);
    pass_watermark();
    session.step_now();
    stop(session, directory)
}

#[test]
fn a_heap_that_goes_takes_its_blocks_with_it_and_no_others() {
    let recorded = record(|thread| {
        create(thread, 2, "first");
        create(thread, 3, "a name longer than sixteen bytes");
        for number in 0..5 {
            alloc(thread, 2, 0x1000 + number * 64, 10);
            alloc(thread, 3, 0x1000 + number * 64, 20);
        }
        alloc(thread, 0, 0x1000, 30);
        assert!(thread.write(RecordKind::Free, &[address_word(2, 0x1000)]));
        assert!(thread.write(RecordKind::ReallocPrepare, &[address_word(2, 0x1040)]));
        assert!(thread.write(RecordKind::ReallocCommit, &[address_word(2, 0x9000), 40, 0]));
        destroy(thread, 2);
        // The number goes to another heap, at addresses of the first.
        create(thread, 2, "second");
        alloc(thread, 2, 0x1080, 50);
    });
    let totals = recorded.summary.summary.totals;
    assert_eq!((totals.unmatched_frees, totals.implied_frees), (0, 0), "{totals:?}");
    assert_eq!(recorded.summary.statistics.loss.records_invalid, 0);
    let live = |heap: u8| {
        let of_it = recorded.summary.summary.by_heap.iter().find(|(_, of, _)| *of == HeapId(heap));
        of_it.map(|(_, _, totals)| (totals.outstanding_count, totals.outstanding_bytes))
    };
    assert_eq!((live(0), live(2), live(3)), (Some((1, 30)), Some((1, 50)), Some((5, 100))));
    let names: Vec<(u8, &str)> =
        recorded.trace.heap_names().iter().map(|name| (name.heap.0, name.name.as_str())).collect();
    assert_eq!(names, [(2, "first"), (3, "a name longer than sixteen bytes"), (2, "second")]);
    let freed = recorded.events.iter().filter(|event| matches!(event.action, Action::Free { .. })).count();
    assert_eq!(freed, 1 + 4, "one by the program, the rest with the heap");
}

#[test]
fn heaps_that_come_and_go_under_one_name_are_named_once() {
    let recorded = record(|thread| {
        for _ in 0..200 {
            create(thread, 9, "arena");
            alloc(thread, 9, 0x1000, 10);
            destroy(thread, 9);
        }
    });
    assert_eq!(recorded.trace.heap_names().len(), 1);
    assert_eq!(recorded.summary.summary.totals.outstanding_count, 0);
    assert_eq!(recorded.summary.summary.totals.free_count, 200);
}

#[test]
fn a_heap_whose_end_was_lost_ends_when_its_number_is_given_again() {
    let recorded = record(|thread| {
        create(thread, 4, "arena");
        alloc(thread, 4, 0x1000, 10);
        create(thread, 4, "arena");
        alloc(thread, 4, 0x2000, 20);
    });
    assert_eq!(recorded.summary.summary.totals.outstanding_bytes, 20);
}

#[test]
fn malloc_cannot_be_destroyed_as_a_heap() {
    let recorded = record(|thread| {
        alloc(thread, 0, 0x1000, 10);
        destroy(thread, 0);
        destroy(thread, 1);
    });
    assert_eq!(recorded.summary.summary.totals.outstanding_bytes, 10);
    assert_eq!(recorded.summary.statistics.loss.records_invalid, 2);
}
