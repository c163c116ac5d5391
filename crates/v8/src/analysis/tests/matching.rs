//! Objects of two snapshots matched, with ids and without.

use proptest::prelude::*;

use super::super::matching::NOT_THERE;
use super::super::{Doubt, MatchedBy, Matching, suspects};
use super::made_heap::MadeHeap;
use super::program;
use crate::devtools::Heap;
use crate::objects::Objects;

#[test]
fn objects_that_were_numbered_anew_are_recognized_by_their_places() {
    // Twelve more objects in front of the others shift their ids.
    let (before, after) = (program(20, 30, 0).open(1), program(50, 30, 12).open(1));
    let matching = Matching::of(&before, &after);
    assert_eq!(matching.matched_by, MatchedBy::Place);
    assert!(matching.later.iter().all(|&node| node != NOT_THERE));
    for (old, &new) in matching.later.iter().enumerate() {
        assert_eq!(before.name(old as u32), after.name(new));
    }
    let found = suspects(&[&before, &after], 3);
    assert_eq!(found.suspects[0].name, "cache (variable in a function)", "{found:#?}");
    assert_eq!(found.suspects[0].growth_count, 30);
}

#[test]
fn snapshots_of_one_numbering_in_the_wrong_order_are_told_so() {
    // Between the snapshots 500 of 1000 objects died and 500 others appeared.
    let snapshot = |range: std::ops::Range<u32>| {
        let mut heap = program(5, 20, 0);
        for number in range {
            let id = 100_001 + 2 * u64::from(number);
            let node = heap.node_with_id("object", &format!("Entry{number}"), 16, id, false);
            heap.edge(1, "element", &number.to_string(), node);
        }
        heap.open(1)
    };
    let (before, after) = (snapshot(0..1000), snapshot(500..1500));
    for (first, second, is_reversed) in [(&before, &after, false), (&after, &before, true)] {
        let matching = Matching::of(first, second);
        assert_eq!((matching.matched_by, matching.is_reversed), (MatchedBy::Id, is_reversed));
    }
    let found = suspects(&[&after, &before], 3);
    assert_eq!(found.doubts, [Doubt::WrongOrder { snapshot: 1 }]);
}

#[test]
fn ids_in_names_are_no_part_of_a_place() {
    let with_scope = |entry_count: u32, id: u32| {
        let mut heap = program(entry_count, 0, id);
        let scope = heap.node("object", &format!("system / Context / scope @{id}"), 40);
        heap.edge(1, "element", "2", scope);
        let list = heap.node("object", "History", 24);
        heap.edge(scope, "context", "list", list);
        (heap.open(1), list)
    };
    let ((before, old), (after, new)) = (with_scope(5, 3), with_scope(6, 9));
    assert_eq!(Matching::of(&before, &after).later[old as usize], new);
}

prop_compose! {
    /// Nodes of a few kinds and names with edges among them, and a subset of the same heap.
    fn two_heaps()(
        kinds in proptest::collection::vec((0..5usize, 0..4usize, 0..100u64), 1..40),
        edges in proptest::collection::vec((0..40u32, 0..3usize, 0..5usize, 0..40u32), 0..120),
        gone in proptest::collection::vec(proptest::bool::weighted(0.2), 40),
        fresh in proptest::collection::vec(proptest::bool::weighted(0.2), 40),
    ) -> (MadeHeap, MadeHeap) {
        let make = |missing: &[bool]| {
            let mut heap = MadeHeap::new();
            let mut nodes = vec![0];
            for (at, &(kind, name, bytes)) in kinds.iter().enumerate() {
                let kind = ["object", "array", "string", "closure", "code"][kind];
                let name = ["Object", "Store", "Item", "system / Context"][name];
                nodes.push(heap.node_with_id(kind, name, bytes, 2 * at as u64 + 11, missing[at]));
            }
            for &(from, kind, name, to) in &edges {
                let at = |number: u32| nodes[number as usize % nodes.len()];
                let (kind, name) = (["property", "internal", "context"][kind], ["a", "b", "c", "d", "e"][name]);
                heap.edge(at(from), kind, name, at(to));
            }
            heap
        };
        (make(&gone), make(&fresh))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_growth_is_somebodys((before, after) in two_heaps()) {
        let (before, after) = (before.open(1), after.open(1));
        // Texts that only compiled code holds are not counted, and may be counted elsewhere.
        let is_of_code = |heap: &Heap, node: u32| {
            heap.kind(node) == crate::NodeKind::STRING
                && heap.kind(heap.dominator(node)) == crate::NodeKind::CODE
        };
        for heap in [&before, &after] {
            prop_assume!(!(0..heap.node_count()).any(|node| is_of_code(heap, node)));
        }
        let found = suspects(&[&before, &after], 100);
        let sum = |heap: &crate::devtools::Heap| -> i64 {
            (0..heap.node_count())
                .filter(|&node| heap.kind(node) != crate::NodeKind::CODE)
                .map(|node| heap.self_bytes(node) as i64)
                .sum()
        };
        prop_assert_eq!(found.growth_bytes, sum(&after) - sum(&before));
        let growing: i64 = found.suspects.iter().map(|suspect| suspect.growth_bytes).sum();
        prop_assert!(growing >= found.growth_bytes);
    }

    #[test]
    fn a_matching_is_one_to_one_whichever_way_it_was_found((before, after) in two_heaps()) {
        let (before, after) = (before.open(1), after.open(1));
        let matching = Matching::of(&before, &after);
        for (old, &new) in matching.later.iter().enumerate() {
            if new != NOT_THERE {
                prop_assert_eq!(matching.earlier[new as usize], old as u32);
                prop_assert_eq!(before.kind(old as u32), after.kind(new));
            }
        }
        for (new, &old) in matching.earlier.iter().enumerate() {
            prop_assert!(old == NOT_THERE || matching.later[old as usize] == new as u32);
        }
    }
}
