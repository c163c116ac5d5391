//! Made memory of which words are bent at random: each is read or refused, within bounds.

use std::num::NonZeroU64;

use heapr_managed::{Contents, ManagedHeap, write_snapshot};

use crate::made_memory::MadeMemory;

/// Number of bent memories; `HEAPR_BENT` names another.
const ROUNDS: u64 = 300;

/// Sequence of random numbers.
struct Sequence(NonZeroU64);

impl Sequence {
    fn next(&mut self) -> u64 {
        let mut state = self.0.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0 = NonZeroU64::new(state).unwrap_or(NonZeroU64::MIN);
        state
    }
}

fn check(heap: &mut ManagedHeap, word_count: usize) {
    // Four references of a word at most.
    assert!(heap.edges.len() <= 4 * word_count, "{} references", heap.edges.len());
    assert!(heap.nodes.len() <= word_count, "{} nodes", heap.nodes.len());
    assert_eq!(heap.first_edges.len(), heap.nodes.len() + 1);
    let root_edges = heap.roots.iter().flat_map(|root| &root.edges);
    let targets = heap.edges.iter().chain(root_edges).map(|edge| edge.target as usize);
    assert!(targets.into_iter().all(|target| target < heap.nodes.len()));
    let mut file = Vec::new();
    write_snapshot(heap, &mut file).unwrap();
    let read = heapr_v8::Snapshot::read(std::io::Cursor::new(file), &heapr_v8::ReadOptions::default());
    assert!(read.is_ok(), "{:?}", read.err());
}

#[test]
fn a_made_process_in_order_has_its_objects() {
    let made = MadeMemory::new();
    let mut heap = made.read(Contents::Names).unwrap();
    assert_eq!(heap.runtime, "CPython 3.12.1");
    let classes = ["app.Thing", "collections.deque", "numpy.ndarray", "dict", "list", "tuple", "str"];
    for class in classes {
        let count = heap.nodes.iter().filter(|node| heap.name_of(node) == class).count();
        assert!(count >= 4, "{count} of {class}");
    }
    check(&mut heap, made.word_count());
}

#[test]
fn heirs_of_a_type_of_any_size_are_read() {
    let mut made = MadeMemory::new();
    made.make_lists_endless();
    let mut heap = made.read(Contents::Names).unwrap();
    assert!(heap.nodes.iter().any(|node| heap.name_of(node) == "app.Rows"));
    check(&mut heap, made.word_count());
}

#[test]
fn values_of_a_dict_at_any_address_are_read_or_left_out() {
    // The second object is a dict; its sixth word leads to the values.
    let first_word = (MadeMemory::object(1) - MadeMemory::object(0) + 64) / 8;
    for values in [u64::MAX, u64::MAX - 7, 1, 1 << 47, (1 << 47) - 8] {
        let mut made = MadeMemory::new();
        made.set_word(first_word as usize + 5, values);
        check(&mut made.read(Contents::Names).unwrap(), made.word_count());
    }
}

#[test]
fn bent_memory_is_read_or_refused_within_bounds() {
    let rounds = std::env::var("HEAPR_BENT").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let made = MadeMemory::new();
    let mut read_count = 0;
    for round in 0..rounds {
        let mut random = Sequence(NonZeroU64::new(0x9e37_79b9_7f4a_7c15 ^ round << 17).unwrap());
        let mut bent = made.clone();
        let edits = 1 << (round % 12);
        let bytes: Vec<u8> = (0..edits * 13).map(|_| (random.next() >> 24) as u8).collect();
        bent.bend(&bytes);
        let contents = if round % 2 == 0 { Contents::Names } else { Contents::Strings };
        if let Ok(mut heap) = bent.read(contents) {
            read_count += 1;
            check(&mut heap, made.word_count());
        }
    }
    assert!(read_count * 4 > rounds, "{read_count} of {rounds}");
}
