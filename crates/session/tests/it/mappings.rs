//! Tests of mappings as a heap: reserved address space is not live, the part that is made usable
//! is.

use heapr_wire::{
    HEAP_MMAP, PROTECT_MAP, PROTECT_RESERVE, PROTECT_USE, RecordKind, STACK_BITS, address_word,
};

use crate::producer::{Producer, ProducerThread, join, live_tid};
use crate::recording::{pass_watermark, start, stop};

const PAGE: u64 = 4096;

fn map(thread: &mut ProducerThread<'_>, page: u64, pages: u64) {
    assert!(
        thread
            .write(RecordKind::Alloc, &[address_word(HEAP_MMAP, page * PAGE), (pages * PAGE) << STACK_BITS])
    );
}

fn protect(thread: &mut ProducerThread<'_>, what: u32, page: u64, pages: u64) {
    let words = [address_word(HEAP_MMAP, page * PAGE), pages * PAGE, u64::from(what) << STACK_BITS];
    assert!(thread.write(RecordKind::Protect, &words));
}

fn unmap(thread: &mut ProducerThread<'_>, page: u64, pages: u64) {
    assert!(thread.write(RecordKind::Unmap, &[address_word(HEAP_MMAP, page * PAGE), pages * PAGE]));
}

/// Returns live pages and blocks, and the peak in pages.
fn pages(script: impl FnOnce(&mut ProducerThread<'_>)) -> (u64, u64, u64) {
    let (mut session, directory) = start(|properties| properties.mmap = true);
    let pool = join(&session);
    let process = Producer::exec(&pool, None);
    script(&mut process.thread(live_tid(1)));
    pass_watermark();
    session.step_now();
    let totals = stop(session, directory).summary.summary.totals;
    assert_eq!((totals.implied_frees, totals.unmatched_frees), (0, 0));
    (totals.outstanding_bytes / PAGE, totals.outstanding_count, totals.peak_bytes / PAGE)
}

#[test]
fn what_is_only_reserved_is_not_live_until_it_can_be_used() {
    let of_terabyte = pages(|thread| {
        protect(thread, PROTECT_MAP, 0x100, 1 << 28);
        protect(thread, PROTECT_USE, 0x100, 10);
        // The range again, and then with the pages behind it: only these are new.
        protect(thread, PROTECT_USE, 0x100, 10);
        protect(thread, PROTECT_USE, 0x105, 10);
    });
    assert_eq!(of_terabyte, (15, 2, 15));
}

#[test]
fn what_cannot_be_used_any_more_is_given_back() {
    let counts = pages(|thread| {
        map(thread, 0x100, 10);
        protect(thread, PROTECT_RESERVE, 0x104, 2);
        // The mapping has two parts, the hole is usable again, and one call makes all of it usable.
        protect(thread, PROTECT_RESERVE, 0x104, 1);
        protect(thread, PROTECT_USE, 0x0ff, 6);
    });
    assert_eq!(counts, (9, 3, 10));
    let ended = pages(|thread| {
        map(thread, 0x100, 10);
        protect(thread, PROTECT_RESERVE, 0x104, 2);
        unmap(thread, 0x100, 10);
        protect(thread, PROTECT_USE, 0x100, 10);
    });
    assert_eq!(ended, (0, 0, 10), "nothing is known there any more");
}

#[test]
fn a_mapping_over_reserved_space_is_live_and_a_reserved_one_over_a_live_one_ends_it() {
    let counts = pages(|thread| {
        protect(thread, PROTECT_MAP, 0x100, 100);
        map(thread, 0x110, 4);
        map(thread, 0x120, 4);
        protect(thread, PROTECT_MAP, 0x122, 50);
        unmap(thread, 0x100, 0x12);
    });
    assert_eq!(counts, (4, 2, 8));
}

#[test]
fn reserved_space_that_is_moved_stays_reserved() {
    let counts = pages(|thread| {
        protect(thread, PROTECT_MAP, 0x100, 10);
        assert!(thread.write(RecordKind::ReallocPrepare, &[address_word(HEAP_MMAP, 0x100 * PAGE)]));
        let words = [address_word(HEAP_MMAP, 0x200 * PAGE), 20 * PAGE, 0];
        assert!(thread.write(RecordKind::ReallocCommit, &words));
        protect(thread, PROTECT_USE, 0x100, 5);
        protect(thread, PROTECT_USE, 0x200, 5);
    });
    assert_eq!(counts, (5, 1, 5));
}
