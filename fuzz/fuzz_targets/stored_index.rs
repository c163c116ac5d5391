//! Fuzzes the index of a snapshot, some of whose bytes are others: each question is answered, or
//! the index is found damaged.
//!
//! Groups of six bytes: a place (four), what is done there, a number. The snapshot is that of the
//! made CPython of `python_heap`.
#![no_main]

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use heapr_managed::{Contents, write_snapshot};
use heapr_v8::analysis::{
    CollectionOrder, Naming, StoredAnswers, collection_owner_table, collection_table, collections,
    large_owners, native_holders, owner_table,
};
use heapr_v8::devtools::Heap;
use heapr_v8::view::{FieldOrder, ObjectOrder, ObjectQuery, Page, SnapshotView};
use heapr_v8::{Fingerprint, IndexStore, ReadOptions, Snapshot, StoredGraph, StoredSummary};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/managed/tests/it/made_memory.rs"]
mod made_memory;

const TOP: usize = 100;
/// Nodes of which all is asked.
const NODES_ASKED: u32 = 64;
/// Bytes of a piece of the file that has contents.
const PIECE_BYTES: usize = 16;

struct Indexed {
    snapshot: PathBuf,
    store: IndexStore,
    entry: File,
    whole: Vec<u8>,
    /// Offsets of the pieces that are not all zeros.
    pieces: Vec<usize>,
}

impl Indexed {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("heapr-fuzz-index-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let snapshot = folder.join("a.heapsnapshot");
        let mut heap = made_memory::MadeMemory::new().read(Contents::Strings).expect("a heap");
        let mut text = Vec::new();
        write_snapshot(&mut heap, &mut text).expect("a snapshot");
        fs::write(&snapshot, text).expect("a file");
        let store = IndexStore::new(folder.join("index"));
        let read = Fingerprint::of(&snapshot).expect("a fingerprint");
        let heap = Snapshot::open(&snapshot, &ReadOptions::default()).expect("a snapshot");
        let heap = Heap::with_summary(heap).expect("a heap");
        let is_stored = store.store(&snapshot, &read, &heap, &StoredSummary::of(&heap));
        assert!(is_stored.expect("an index"));
        let mut entries = fs::read_dir(folder.join("index")).expect("a folder");
        let entry = entries.next().expect("an index").expect("an index").path();
        let whole = fs::read(&entry).expect("an index");
        let has_contents = |at: &usize| whole[*at..].iter().take(PIECE_BYTES).any(|&byte| byte != 0);
        let pieces = (0..whole.len()).step_by(PIECE_BYTES).filter(has_contents).collect();
        let entry = File::options().write(true).open(entry).expect("an index");
        Self { snapshot, store, entry, whole, pieces }
    }

    /// Changes the file as bytes say. Returns the offsets that are changed.
    fn bend(&self, bytes: &[u8]) -> Vec<usize> {
        let mut changed = Vec::new();
        for edit in bytes.chunks_exact(6) {
            let place = u32::from_le_bytes([edit[0], edit[1], edit[2], edit[3]]) as usize;
            let piece = self.pieces[place / PIECE_BYTES % self.pieces.len()];
            let at = (piece + place % PIECE_BYTES).min(self.whole.len() - 1);
            let number = edit[5];
            let word = match edit[4] & 3 {
                0 => u32::from(number),
                1 => u32::MAX - u32::from(number),
                2 => 1 << (number & 31),
                _ => u32::from(number).wrapping_mul(0x9e37_79b9),
            };
            let (at, new) = match edit[4] & 4 {
                0 => (at, vec![number]),
                _ => (at & !3, word.to_le_bytes().to_vec()),
            };
            let new = &new[..new.len().min(self.whole.len() - at)];
            self.entry.write_all_at(new, at as u64).expect("writing");
            changed.push(at);
        }
        changed
    }

    fn mend(&self, changed: &[usize]) {
        for &at in changed {
            let end = (at + 4).min(self.whole.len());
            self.entry.write_all_at(&self.whole[at..end], at as u64).expect("writing");
        }
    }

    fn ask(&self) {
        let Some(stored) = self.store.open(&self.snapshot).map(Arc::new) else { return };
        if let Some(answers) = stored.answers(None) {
            ask_answers(&stored, &answers);
        }
        let view = SnapshotView::of_index(stored);
        let _ = view.summary();
        ask_nodes(&view);
        if let Ok(heap) = view.heap() {
            ask_heap(&heap);
        }
    }
}

fn ask_answers(stored: &StoredGraph, answers: &StoredAnswers) {
    for order in [CollectionOrder::Largest, CollectionOrder::Emptiest] {
        answers.collections(order, TOP).map(|found| collection_table(stored, found));
    }
    answers.collection_owners(TOP).map(|found| collection_owner_table(stored, found));
    answers.large_owners(TOP).map(|found| owner_table("fuzzed", stored, found, str::to_owned));
    let _ = answers.native_holders(TOP);
}

fn ask_nodes(view: &SnapshotView) {
    for order in [
        ObjectOrder::Retained,
        ObjectOrder::Shallow,
        ObjectOrder::Id,
        ObjectOrder::Distance,
        ObjectOrder::Name,
    ] {
        let _ = view.search(&ObjectQuery::default(), order, Page::top(TOP));
        for class in (0..view.objects().class_list().len() as u32).take(8) {
            let query = ObjectQuery { classes: Some(&[class]), ..ObjectQuery::default() };
            let _ = view.search(&query, order, Page::top(TOP));
        }
    }
    for node in 0..view.objects().node_count().min(NODES_ASKED) {
        let _ = view.details(node);
        let _ = view.children(node, FieldOrder::Retained, Page::top(TOP));
        let _ = view.retainers(node, Page::top(TOP));
        let _ = view.dominated(node, Page::top(TOP));
        let _ = view.dominators(node);
    }
    let _ = view.retaining_paths(view.objects().node_count() / 2, &HashSet::new(), 3);
}

fn ask_heap(heap: &Heap) {
    heap.aggregates(None);
    heap.statistics();
    let naming = Naming::of(heap);
    large_owners(heap, &naming, TOP);
    native_holders(heap, &naming);
    collections(heap, CollectionOrder::Largest, TOP);
}

thread_local! {
    static INDEXED: Indexed = Indexed::new();
}

fuzz_target!(|bytes: &[u8]| {
    INDEXED.with(|indexed| {
        let changed = indexed.bend(bytes);
        indexed.ask();
        indexed.mend(&changed);
    });
});
