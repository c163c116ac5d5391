//! Duplicate strings, shapes, collections, detached trees.

use super::super::collections::all_collections;
use super::super::{
    CollectionOrder, Naming, collection_owners, collections, detached, duplicated_strings, native_holders,
    shapes,
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
    assert_eq!(told, [(20, true), (0, false)]);
}

/// Adds a map with so many slots and items to an object.
fn map(heap: &mut MadeHeap, holder: u32, field: (&str, &str), slots: u64, items: &[u32]) -> u32 {
    let map = heap.node("object", "java.util.HashMap", 48);
    heap.edge(holder, field.0, field.1, map);
    let table = heap.node("array", "java.util.HashMap$Node[]", 16 + 4 * slots);
    heap.edge(map, "internal", "table", table);
    for (position, &item) in items.iter().enumerate() {
        let node = heap.node("array", "java.util.HashMap$Node", 32);
        heap.edge(table, "element", &position.to_string(), node);
        heap.edge(node, "internal", "value", item);
    }
    map
}

#[test]
fn collections_are_added_up_by_the_field_that_holds_them() {
    let mut heap = MadeHeap::new().with_tables(&["java.util.HashMap"]);
    let shop = heap.node("object", "class Shop", 8);
    heap.edge(0, "element", "1", shop);
    let mut carts = Vec::new();
    for number in 0..3 {
        // Held by a node of the map below, and by nothing else.
        let cart = heap.node("object", "java.util.HashMap", 48);
        let table = heap.node("array", "java.util.HashMap$Node[]", 32);
        heap.edge(cart, "internal", "table", table);
        carts.push(cart);
        let customer = heap.node("object", "shop.Customer", 24);
        heap.edge(0, "element", &(10 + number).to_string(), customer);
        let text = heap.node("object", "java.lang.String", 24);
        map(&mut heap, customer, ("property", "attrs"), 16, &[text]);
    }
    map(&mut heap, shop, ("property", "CARTS"), 16, &carts);
    let heap = heap.open(1);
    let found = collection_owners(&heap, &Naming::of(&heap), &all_collections(&heap), 10);
    let told: Vec<_> = found
        .iter()
        .map(|of| {
            let slots = (of.slot_count, of.used_count, of.wasted_bytes);
            (of.name.as_str(), of.collection_count, of.empty_count, slots)
        })
        .collect();
    assert_eq!(
        told,
        [
            ("shop.Customer.attrs (HashMap)", 3, 0, (48, 3, 180)),
            ("class Shop: CARTS (HashMap)", 1, 0, (16, 3, 52)),
            ("class Shop: CARTS[…] (HashMap)", 3, 3, (12, 0, 48)),
        ]
    );
    assert_eq!(found[0].fill_percent(), Some(6));
}

#[test]
fn fields_of_a_holder_with_many_of_them_are_told_apart() {
    let mut heap = MadeHeap::new().with_tables(&["java.util.HashMap"]);
    let holder = heap.node("object", "class Registry", 8);
    heap.edge(0, "element", "1", holder);
    for number in 0..100 {
        let field = if number % 2 == 0 { "EVEN" } else { "ODD" };
        map(&mut heap, holder, ("property", field), 16, &[]);
    }
    let heap = heap.open(1);
    let found = collection_owners(&heap, &Naming::of(&heap), &all_collections(&heap), 10);
    let told: Vec<_> = found.iter().map(|of| (of.name.as_str(), of.collection_count)).collect();
    assert_eq!(told, [("class Registry: EVEN (HashMap)", 50), ("class Registry: ODD (HashMap)", 50)]);
}

#[test]
fn a_part_of_itself_has_no_text() {
    let mut heap = MadeHeap::new();
    let string = heap.node("concatenated string", "", 32);
    heap.edge(0, "element", "0", string);
    heap.edge(string, "internal", "first", string);
    let line = heap.node("string", "line", 24);
    heap.edge(string, "internal", "second", line);
    assert_eq!(heap.open(1).display_text(string), "line");
}

#[test]
fn objects_that_node_marks_are_no_nodes_of_a_document() {
    let mut heap = MadeHeap::new();
    let list = heap.detached("<ul>", 100);
    heap.edge(0, "element", "0", list);
    let wrap = heap.detached("Node / BindingData", 100);
    heap.edge(0, "element", "1", wrap);
    let heap = heap.open(1);
    assert_eq!(detached(&heap, 5).iter().map(|found| found.node).collect::<Vec<_>>(), [list]);
    assert!(heap.is_detached(list) && !heap.is_detached(wrap));
}

#[test]
fn native_memory_is_told_by_what_holds_it() {
    let mut heap = MadeHeap::new();
    let library = heap.node("native", "(data of libz.so)", 0);
    heap.edge(0, "element", "1", library);
    let window = heap.node("native", "(native block)", 100);
    heap.edge(library, "internal", "(data)", window);
    let store = heap.node("object", "Store", 24);
    heap.edge(0, "element", "2", store);
    for (number, bytes) in [(0, 4000), (1, 6000)] {
        let array = heap.node("object", "Array", 16);
        heap.edge(store, "element", &number.to_string(), array);
        let block = heap.node("native", "(native block)", bytes);
        heap.edge(array, "internal", "data", block);
    }
    let below = heap.node("native", "(native block)", 5);
    heap.edge(window, "internal", "+0x8", below);
    let shared = heap.node("native", "(native block)", 70);
    heap.edge(store, "internal", "shared", shared);
    heap.edge(library, "internal", "(data)", shared);
    let heap = heap.open(1);
    let found = native_holders(&heap, &Naming::of(&heap));
    let told: Vec<(&str, u64, u64, u64)> = found
        .iter()
        .map(|of| (of.name.as_str(), of.native_bytes, of.block_count, of.retained_bytes))
        .collect();
    let wanted =
        [("Store", 10_000, 2, 10_056), ("(data of libz.so)", 105, 2, 105), ("(several together)", 70, 1, 70)];
    assert_eq!(told, wanted);
}
