//! Duplicate strings, shapes, collections, detached trees.

use super::super::{
    CollectionOrder, Naming, collections, detached, duplicated_strings, native_holders, shapes,
};
use super::made_heap::MadeHeap;
use super::module;
use crate::objects::Objects;

#[test]
fn copies_of_strings_waste_all_but_one() {
    let mut heap = MadeHeap::new();
    for bytes in [32, 32, 40] {
        let copy = heap.node("string", "the same", bytes);
        heap.edge(0, "element", "1", copy);
    }
    let found = duplicated_strings(&heap.open(1), 5);
    assert_eq!((found.len(), found[0].count, found[0].wasted_bytes), (1, 3, 72));
}

#[test]
fn shapes_do_not_depend_on_the_order_of_fields() {
    let mut heap = MadeHeap::new();
    for fields in [["a", "b"], ["b", "a"], ["a", "c"]] {
        let object = heap.node("object", "Object", 24);
        heap.edge(0, "element", "1", object);
        for field in fields {
            let value = heap.node("string", field, 8);
            heap.edge(object, "property", field, value);
        }
    }
    let found = shapes(&heap.open(1), 5);
    assert_eq!(found.iter().map(|shape| shape.count).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn the_top_of_a_detached_tree_is_listed_once() {
    let mut heap = MadeHeap::new();
    let holder = heap.node("object", "History", 24);
    heap.edge(0, "element", "1", holder);
    let list = heap.detached("<ul>", 100);
    heap.edge(holder, "property", "list", list);
    for _ in 0..3 {
        let row = heap.detached("<li>", 50);
        heap.edge(list, "element", "1", row);
    }
    let found = detached(&heap.open(1), 5);
    assert_eq!((found.len(), found[0].detached_count, found[0].retained_bytes), (1, 4, 250));
}

#[test]
fn a_store_that_may_be_full_of_integers_is_not_called_empty() {
    let mut heap = MadeHeap::new();
    let context = module(&mut heap);
    for (name, references) in [("integers", 0), ("objects", 20)] {
        let list = heap.node("object", "Array", 32);
        heap.edge(context, "context", name, list);
        let elements = heap.node("array", "", 800);
        heap.edge(list, "internal", "elements", elements);
        for number in 0..references {
            let entry = heap.node("object", "Entry", 16);
            heap.edge(list, "element", &number.to_string(), entry);
            heap.edge(elements, "internal", &number.to_string(), entry);
        }
    }
    let heap = heap.open(1);
    let found = collections(&heap, CollectionOrder::Emptiest, 5);
    let told: Vec<_> =
        found.iter().map(|found| (found.reference_count, found.fill_percent.is_some())).collect();
    assert_eq!(told, [("Store", 10_000, 2), ("(data of libz.so)", 105, 2), ("(several together)", 70, 1)]);
    assert_eq!(found.iter().map(|of| of.retained_bytes).collect::<Vec<_>>(), [10_056, 105, 70]);
}
