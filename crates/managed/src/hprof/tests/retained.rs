//! Retained sizes of made heaps, beside those of a search without each object.

use heapr_v8::devtools::Heap;
use proptest::prelude::*;

use super::{Made, read_by};
use crate::request::Contents;

const COUNT: usize = 9;
const ARRAY_CLASS: u64 = 7;

fn id(object: usize) -> u64 {
    0x8000 + 0x200 * object as u64
}

/// A heap of arrays that refer to each other. Each has another size.
fn made(edges: &[(usize, usize)], roots: &[usize]) -> Made {
    let mut made = Made::new("1.0.2", 8);
    made.names();
    let mut parts = vec![made.class(1, 0, 0, &[], &[]), made.class(ARRAY_CLASS, 1, 0, &[], &[])];
    for object in 0..COUNT {
        let targets = edges.iter().filter(|edge| edge.0 == object).map(|edge| id(edge.1));
        let items: Vec<u64> = targets.chain((0..object).map(|_| 0)).collect();
        parts.push(made.objects(id(object), ARRAY_CLASS, &items));
    }
    parts.extend(roots.iter().map(|&root| [vec![0x05], made.id(id(root))].concat()));
    for part in parts {
        made.record(0x1c, None, &part);
    }
    made
}

/// Returns which objects the roots lead to without one of them.
fn reached(edges: &[(usize, usize)], roots: &[usize], without: Option<usize>) -> [bool; COUNT] {
    let mut reached = [false; COUNT];
    let mut pending: Vec<usize> = roots.to_vec();
    while let Some(object) = pending.pop() {
        if Some(object) != without && !std::mem::replace(&mut reached[object], true) {
            pending.extend(edges.iter().filter(|edge| edge.0 == object).map(|edge| edge.1));
        }
    }
    reached
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn an_object_retains_what_only_it_leads_to(
        edges in prop::collection::vec((0..COUNT, 0..COUNT), 0..24),
        roots in prop::collection::vec(0..COUNT, 1..4),
    ) {
        let snapshot = read_by(&made(&edges, &roots).bytes, Contents::Names, 2).unwrap().snapshot;
        let heap = Heap::with_summary(snapshot).unwrap();
        let node = |object: usize| heap.snapshot().node_of_id(id(object)).unwrap();
        let all = reached(&edges, &roots, None);
        for object in (0..COUNT).filter(|&object| all[object]) {
            let rest = reached(&edges, &roots, Some(object));
            let gone = (0..COUNT).filter(|&other| all[other] && !rest[other]);
            let expected: u64 = gone.map(|other| heap.snapshot().self_bytes(node(other))).sum();
            prop_assert_eq!(heap.retained()[node(object) as usize], expected, "object {}", object);
        }
    }
}
