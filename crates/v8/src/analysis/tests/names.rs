//! Names of objects, and paths to them.

use super::super::{Naming, path_from_root, suspects};
use super::made_heap::MadeHeap;
use super::module;
use crate::objects::Objects;

#[test]
fn an_object_without_a_name_of_its_own_is_called_after_its_holder() {
    let mut heap = MadeHeap::new();
    let store = heap.node("object", "Store", 24);
    heap.edge(0, "shortcut", "1", store);
    let by_key = heap.node("object", "Object", 24);
    heap.edge(store, "property", "byKey", by_key);
    let list = heap.node("object", "Array", 24);
    heap.edge(by_key, "property", "orders", list);
    let elements = heap.node("array", "", 24);
    heap.edge(list, "internal", "elements", elements);
    let entry = heap.node("object", "Object", 24);
    heap.edge(elements, "internal", "7", entry);
    let heap = heap.open(1);
    let naming = Naming::of(&heap);
    assert_eq!(naming.call(store).text, "Store");
    assert_eq!(naming.call(list).text, "Store.byKey.orders");
    assert_eq!(naming.call(entry).text, "Store.byKey.orders[…]");
}

#[test]
fn holders_that_give_no_name_and_hold_one_another_end_a_name() {
    let mut heap = MadeHeap::new();
    let first = heap.node("object", "Object", 24);
    let second = heap.node("object", "Object", 24);
    heap.edge(first, "internal", "value", second);
    heap.edge(second, "internal", "value", first);
    // The path from the root leads through code, which says less than the other object does.
    let code = heap.node("code", "", 24);
    heap.edge(0, "internal", "1", code);
    heap.edge(code, "internal", "2", first);
    let heap = heap.open(1);
    assert_eq!(Naming::of(&heap).call(second).text, "Object");
}

#[test]
fn a_way_is_a_shortest_one_from_the_root_past_all_cycles() {
    let mut heap = MadeHeap::new();
    let context = module(&mut heap);
    let first = heap.node("object", "Link", 16);
    heap.edge(context, "context", "first", first);
    let second = heap.node("object", "Link", 16);
    // Both hold each other, by names that say more than the store does.
    heap.edge(second, "property", "previous", first);
    let store = heap.node("array", "", 16);
    heap.edge(first, "internal", "elements", store);
    heap.edge(store, "internal", "0", second);
    // A stack slot that refers to the object at the moment.
    let stack = heap.node("synthetic", "(Stack roots)", 0);
    heap.edge(0, "element", "1", stack);
    heap.edge(stack, "internal", "7", second);
    let heap = heap.open(1);
    let path = path_from_root(&heap, &Naming::of(&heap), second);
    let names: Vec<&str> = path.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(
        names,
        ["(root)", "globalThis", "function handle", "system / Context", "Link", "(array)", "Link"]
    );
    assert_eq!(path.iter().map(|step| step.is_storage).collect::<Vec<_>>()[4..], [false, true, false]);
    assert_eq!(path_from_root(&heap, &Naming::of(&heap), 0).len(), 1);
}

#[test]
fn the_keys_of_a_dictionary_are_no_names() {
    let snapshot = |entries: u32| {
        let mut heap = MadeHeap::new();
        let context = module(&mut heap);
        let repository = heap.node("object", "Repository", 24);
        heap.edge(context, "context", "repository", repository);
        let by_tenant = heap.node("object", "Object", 24);
        heap.edge(repository, "property", "byTenant", by_tenant);
        for tenant in 0..8 {
            let map = heap.node("object", "Map", 32);
            heap.edge(by_tenant, "property", &format!("tenant-{tenant}"), map);
            let table = heap.node("array", "", 16);
            heap.edge(map, "internal", "table", table);
            for entry in 0..entries {
                let id = 100_001 + 2 * u64::from(tenant * 1000 + entry);
                let row = heap.node_with_id("object", "Row", 40, id, false);
                heap.edge(table, "internal", &entry.to_string(), row);
            }
        }
        heap.open(1)
    };
    let found = suspects(&[&snapshot(5), &snapshot(25)], 5);
    let first = &found.suspects[0];
    assert_eq!((first.name.as_str(), first.owner_count), ("Repository.byTenant[…]", 8), "{found:#?}");
    assert_eq!(first.growth_count, 160);
}

#[test]
fn what_an_es_module_exports_has_the_name_of_its_export() {
    for (kind, cell_kind) in [("hidden", "hidden"), ("native", "native")] {
        let mut heap = MadeHeap::new();
        let context = module(&mut heap);
        let es_module = heap.node(kind, "system / SourceTextModule", 100);
        heap.edge(context, "internal", "extension", es_module);
        let exports = heap.node("array", "", 100);
        heap.edge(es_module, "hidden", "0", exports);
        let key = heap.node("string", "store", 24);
        heap.edge(exports, "internal", "5", key);
        let cell = heap.node(cell_kind, "system / Cell", 16);
        heap.edge(exports, "internal", "6", cell);
        let store = heap.node("object", "Array", 32);
        heap.edge(cell, "internal", "value", store);
        let heap = heap.open(1);
        assert_eq!(Naming::of(&heap).call(store).text, "store (variable in a function)");
    }
}

#[test]
fn a_popular_object_is_called_after_the_variable_that_it_is() {
    let mut heap = MadeHeap::new();
    let context = module(&mut heap);
    let registry = heap.node("object", "FinalizationRegistry", 32);
    heap.edge(context, "context", "registry", registry);
    let cells = heap.node("object", "Array", 32);
    heap.edge(context, "context", "cells", cells);
    for number in 0..2000 {
        let cell = heap.node("hidden", "system / WeakCell", 32);
        heap.edge(cells, "element", &number.to_string(), cell);
        heap.edge(cell, "hidden", "0", registry);
    }
    let heap = heap.open(1);
    let naming = Naming::of(&heap);
    let edge = naming.naming_edge(registry).unwrap();
    assert_eq!(heap.source(edge), context);
}

#[test]
fn what_a_function_of_the_runtime_has_is_not_named_after_that() {
    let mut heap = MadeHeap::new();
    let global = heap.node("object", "global", 40);
    heap.edge(0, "shortcut", "2", global);
    let function = heap.node("closure", "setTimeout", 64);
    heap.edge(global, "property", "setTimeout", function);
    let call = heap.node("object", "system / Context", 48);
    heap.edge(function, "internal", "context", call);
    let list = heap.node("object", "TimersList", 48);
    heap.edge(call, "context", "list", list);
    let item = heap.node("object", "Array", 16);
    heap.edge(list, "property", "items", item);
    heap.place(function, "node:timers", 3);
    heap.place(list, "node:internal/timers", 9);
    let heap = heap.open(1);
    let called = Naming::of(&heap).call(list);
    assert_eq!(called.whole(Some("items")), "TimersList.items (held by the runtime)", "{called:?}");
}
