//! Tests of an index's file: its damage, its age, its links, its room.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use super::{Dice, indexed};
use crate::StoredSummary;
use crate::devtools::Heap;
use crate::fingerprint::Fingerprint;
use crate::objects::{ObjectOrder, Page};
use crate::view::{FieldOrder, ObjectQuery};

#[test]
fn a_damaged_index_is_noticed_and_never_believed() {
    let made = indexed(5000, 6);
    let entry = made.entry();
    let whole = fs::read(&entry).unwrap();
    let expected = StoredSummary::of(&made.heap);
    let mut noticed = 0;
    let mut dice = Dice(7);
    for _ in 0..60 {
        let mut bytes = whole.clone();
        let at = dice.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << dice.below(8);
        fs::write(&entry, &bytes).unwrap();
        let Some(view) = made.store.view(&made.file) else {
            noticed += 1;
            continue;
        };
        let found = view.search(&ObjectQuery::default(), ObjectOrder::Retained, Page::top(10));
        let rows = (0..5000).map(|node| view.details(node)).collect::<Result<Vec<_>, _>>();
        let retainers = (0..5000).try_for_each(|node| {
            view.retainers(node, Page::top(100))?;
            view.children(node, FieldOrder::Object, Page::top(100))?;
            view.dominated(node, Page::top(100)).map(|_| ())
        });
        let loaded = Heap::load(Arc::new(made.open()));
        let class_count = view.objects().class_list().len() as u32;
        let of_classes = (0..class_count).try_for_each(|class| {
            let query = ObjectQuery { classes: Some(&[class]), ..ObjectQuery::default() };
            let listed = view.search(&query, ObjectOrder::Retained, Page::top(10))?;
            view.search(&query, ObjectOrder::Shallow, Page::top(10)).map(|_| drop(listed))
        });
        let summary = loaded.map(|heap| (StoredSummary::of(&heap), heap.retainers().all_edges().len()));
        if found.is_err() || rows.is_err() || retainers.is_err() || of_classes.is_err() || summary.is_none() {
            noticed += 1;
        }
        assert!(summary.is_none_or(|(summary, _)| summary == expected), "byte {at}");
    }
    assert!(noticed > 40, "{noticed}");
    for cut in (0..whole.len()).step_by(whole.len() / 50) {
        fs::write(&entry, &whole[..cut]).unwrap();
        assert!(made.store.view(&made.file).is_none());
    }
}

#[test]
fn an_index_lasts_until_the_snapshot_changes() {
    let made = indexed(50, 8);
    assert_eq!(fs::metadata(made.entry()).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(made.store.view(&made.file).is_some());
    let mut text = fs::read(&made.file).unwrap();
    *text.last_mut().unwrap() = b' ';
    fs::write(&made.file, &text).unwrap();
    assert!(made.store.view(&made.file).is_none());
    // An index is not written either for a file that changed while it was read.
    let read = Fingerprint::of(&made.file).unwrap();
    text.push(b' ');
    fs::write(&made.file, &text).unwrap();
    assert!(!made.store.store(&made.file, &read, &made.heap, &StoredSummary::default()).unwrap());
}

#[test]
fn an_index_is_not_read_or_written_through_a_link() {
    let made = indexed(50, 9);
    let entry = made.entry();
    let elsewhere = made.file.with_file_name("elsewhere");
    fs::rename(&entry, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &entry).unwrap();
    assert!(made.store.open(&made.file).is_none());
    let before = fs::read(&elsewhere).unwrap();
    let read = Fingerprint::of(&made.file).unwrap();
    assert!(made.store.store(&made.file, &read, &made.heap, &StoredSummary::default()).unwrap());
    assert!(fs::symlink_metadata(&entry).unwrap().is_file(), "the link is replaced");
    assert_eq!(fs::read(&elsewhere).unwrap(), before);
}

#[test]
fn the_oldest_index_goes_when_room_is_needed() {
    let made = indexed(50, 10);
    let length = fs::metadata(made.entry()).unwrap().len();
    let other = made.file.with_file_name("b.heapsnapshot");
    fs::copy(&made.file, &other).unwrap();
    let read = Fingerprint::of(&other).unwrap();
    let small = made.store.clone().with_most_bytes(length / 2);
    assert!(!small.store(&other, &read, &made.heap, &StoredSummary::default()).unwrap());
    assert!(made.store.open(&made.file).is_some(), "nothing goes for what does not fit anyway");
    let one = made.store.clone().with_most_bytes(length * 2);
    assert!(one.store(&other, &read, &made.heap, &StoredSummary::default()).unwrap());
    assert!(one.open(&made.file).is_none());
    assert!(one.open(&other).is_some());
}
