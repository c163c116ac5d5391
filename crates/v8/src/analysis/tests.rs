//! Tests with heaps made by hand, and with random ones.

mod made_heap;

use made_heap::MadeHeap;
use proptest::prelude::*;

use crate::devtools::Heap;
use crate::objects::Objects;

use super::matching::NOT_THERE;
use super::{
    CollectionOrder, Confidence, Doubt, MatchedBy, Matching, Naming, collections, detached,
    duplicated_strings, path_from_root, shapes, suspects,
};

/// Program with a cache in a variable, a class that has a list, and `noise` other objects.
fn program(entry_count: u32, job_count: u32, noise: u32) -> MadeHeap {
    let mut heap = MadeHeap::new();
    let global = heap.node("object", "global", 40);
    heap.edge(0, "shortcut", "2", global);
    let module = heap.node("object", "system / Context", 48);
    let function = heap.node("closure", "handle", 64);
    heap.edge(global, "property", "handle", function);
    heap.edge(function, "internal", "context", module);
    for number in 0..noise {
        let object = heap.node("object", &format!("Noise{number}"), 16);
        heap.edge(global, "property", &format!("noise{number}"), object);
    }
    let cache = heap.node("object", "Map", 32);
    heap.edge(module, "context", "cache", cache);
    let table = heap.node("array", "", 16 * u64::from(entry_count) + 16);
    heap.edge(cache, "internal", "table", table);
    for number in 0..entry_count {
        let value = heap.node("object", "Response", 100);
        heap.edge(table, "internal", &(number + entry_count).to_string(), value);
        let body = heap.node("string", &format!("body {number}"), 50);
        heap.edge(value, "property", "body", body);
    }
    let queue = heap.node("object", "Queue", 24);
    heap.edge(module, "context", "queue", queue);
    let mut last = None;
    for _ in 0..job_count {
        let job = heap.node("object", "Job", 40);
        match last {
            None => heap.edge(queue, "property", "first", job),
            Some(last) => heap.edge(last, "property", "next", job),
        }
        last = Some(job);
    }
    heap
}

#[test]
fn a_cache_that_grows_is_named_by_its_variable() {
    let (before, after) = (program(20, 5, 3).open(1), program(60, 5, 3).open(1));
    let found = suspects(&[&before, &after], 3);
    assert_eq!(found.suspects[0].name, "cache (variable in a function)", "{found:#?}");
    assert_eq!(found.suspects[0].growth_count, 40);
    assert_eq!(found.growth_bytes, 40 * (100 + 50 + 16));
}

#[test]
fn a_list_that_grows_at_its_end_is_named_by_what_holds_its_first_link() {
    let (before, after) = (program(5, 20, 3).open(1), program(5, 60, 3).open(1));
    let found = suspects(&[&before, &after], 3);
    assert_eq!(found.suspects[0].name, "Queue.first", "{found:#?}");
    assert_eq!(found.suspects[0].growth_count, 40);
}

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

#[test]
fn a_heap_that_did_not_change_has_no_suspects() {
    let (before, after) = (program(20, 30, 7).open(1), program(20, 30, 7).open(1));
    let matching = Matching::of(&before, &after);
    assert_eq!(matching.matched_by, MatchedBy::Id);
    assert_eq!(matching.kept_percent(), 100);
    let found = suspects(&[&before, &after], 3);
    assert!(found.suspects.is_empty() && found.growth_bytes == 0, "{found:#?}");
}

#[test]
fn long_lists_overflow_no_stack() {
    let (before, after) = (program(1, 100_000, 0).open(1), program(1, 300_000, 0).open(1));
    let found = suspects(&[&before, &after], 1);
    assert_eq!(found.suspects[0].name, "Queue.first");
    assert_eq!(found.suspects[0].growth_count, 200_000);
    assert!(found.suspects[0].path.len() < 10);
}

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

/// Adds a module with a function that uses its context. Returns the context.
fn module(heap: &mut MadeHeap) -> u32 {
    let global = heap.node("object", "global", 40);
    heap.edge(0, "shortcut", "2", global);
    let function = heap.node("closure", "handle", 64);
    heap.edge(global, "property", "handle", function);
    let context = heap.node("object", "system / Context", 48);
    heap.edge(function, "internal", "context", context);
    context
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
fn a_state_that_is_made_anew_with_each_change_grows_in_its_field() {
    let snapshot = |version: u32| {
        let mut heap = MadeHeap::new();
        let context = module(&mut heap);
        let mut made = 0;
        // The objects of an earlier state are gone; their contents live on.
        let mut new = |heap: &mut MadeHeap, name: &str| {
            made += 1;
            let id = u64::from(100_001 + 1000 * version + 2 * made);
            heap.node_with_id("object", name, 24, id, false)
        };
        let state = new(&mut heap, "Object");
        heap.edge(context, "context", "state", state);
        let todos = new(&mut heap, "Array");
        heap.edge(state, "property", "todos", todos);
        let elements = new(&mut heap, "Object");
        heap.edge(state, "property", "settings", elements);
        for todo in 0..20 * version {
            let todo_id = 200_001 + 2 * u64::from(todo);
            let item = heap.node_with_id("object", "Todo", 32, todo_id, false);
            heap.edge(todos, "element", &todo.to_string(), item);
        }
        heap.open(1)
    };
    let heaps = [snapshot(1), snapshot(2), snapshot(3)];
    let found = suspects(&heaps.each_ref(), 3);
    let first = &found.suspects[0];
    assert_eq!(first.name, "state.todos (variable in a function)", "{found:#?}");
    assert_eq!(first.growth_bytes_at, [640, 1280]);
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

/// Program of Bun: Maps and Sets have no references to their entries, which are unreachable.
fn without_entries(entry_count: u32, name: &str, collection: &str) -> Heap {
    let mut heap = MadeHeap::new();
    let global = heap.node("object", "GlobalObject", 5000);
    heap.edge(0, "element", "0", global);
    for (field, class, bytes) in [(name, collection, 64 + 48 * u64::from(entry_count)), ("other", "Map", 900)]
    {
        let holder = heap.node("object", class, 32);
        let table = heap.node("hidden", "Cell Butterfly", bytes);
        heap.edge(global, "property", field, holder);
        heap.edge(holder, "internal", "", table);
    }
    for at in 0..40 {
        let function = heap.node("closure", &format!("f{at}"), 64);
        heap.edge(global, "property", &format!("f{at}"), function);
    }
    for _ in 0..entry_count {
        let session = heap.node("object", "Session", 32);
        let rows = heap.node("object", "Array", 16);
        heap.edge(session, "property", "rows", rows);
    }
    heap.open(1)
}

#[test]
fn what_a_map_keeps_without_references_is_told_by_the_size_of_its_table() {
    for collection in ["Map", "Set"] {
        let heaps = [500, 900, 1300].map(|count| without_entries(count, "sessions", collection));
        let found = suspects(&heaps.iter().collect::<Vec<_>>(), 5);
        assert!(found.doubts.contains(&Doubt::EntriesMissing { snapshot: 2 }), "{:?}", found.doubts);
        let first = &found.suspects[0];
        assert_eq!((first.name.as_str(), first.confidence), ("GlobalObject.sessions", Confidence::Medium));
        assert_eq!(first.collects[0].class, "Session");
        assert!(first.reasons.iter().any(|it| it.contains("size of its table")), "{:?}", first.reasons);
    }
}

#[test]
fn what_a_root_holds_is_told_by_class() {
    let snapshot = |count: u32| {
        let mut heap = MadeHeap::new();
        module(&mut heap);
        for number in 0..count {
            let id = 100_001 + 4 * u64::from(number);
            let handle = heap.node_with_id("object", "TCP", 64, id, false);
            heap.edge(0, "element", "7", handle);
            let request = heap.node_with_id("object", "Wrapped", 8, id + 2, false);
            heap.edge(0, "element", "8", request);
        }
        heap.open(1)
    };
    let found = suspects(&[&snapshot(5), &snapshot(45)], 5);
    let names: Vec<&str> = found.suspects.iter().map(|suspect| suspect.name.as_str()).collect();
    assert_eq!(names, ["TCP (open handles)", "Wrapped (held by the runtime)"]);
}

#[test]
fn with_exposed_internals_roots_own_nothing_of_the_program() {
    let snapshot = |count: u32| {
        let mut heap = MadeHeap::new();
        let roots = heap.node("synthetic", "(GC roots)", 0);
        heap.edge(0, "element", "1", roots);
        let realm = heap.node("hidden", "system / NativeContext", 100);
        heap.edge(roots, "element", "1", realm);
        let global = heap.node("object", "global", 40);
        heap.edge(realm, "internal", "global", global);
        let history = heap.node("object", "Array", 32);
        heap.edge(global, "property", "history", history);
        let environment = heap.node("synthetic", "Node / Environment", 0);
        heap.edge(0, "element", "2", environment);
        for number in 0..count {
            let id = 100_001 + 2 * u64::from(number);
            let entry = heap.node_with_id("object", "Stream", 64, id, false);
            heap.edge(history, "element", &number.to_string(), entry);
            // Node has a list of its own.
            heap.edge(environment, "internal", &number.to_string(), entry);
        }
        heap.open(1)
    };
    let (before, after) = (snapshot(5), snapshot(45));
    assert!(after.shows_internals());
    assert_eq!(suspects(&[&before, &after], 5).suspects[0].name, "globalThis.history");
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
fn a_log_that_is_one_string_is_read_line_by_line_once() {
    let mut heap = MadeHeap::new();
    let mut log = heap.node("string", "start;", 24);
    heap.edge(0, "element", "0", log);
    for number in 0..60_000 {
        let line = heap.node("string", &format!("line {number};"), 24);
        let longer = heap.node("concatenated string", "", 32);
        heap.edge(longer, "internal", "first", log);
        heap.edge(longer, "internal", "second", line);
        log = longer;
    }
    heap.edge(0, "element", "1", log);
    let heap = heap.open(1);
    // All texts longer than the limit begin alike. Line by line from each of them it would take
    // hours.
    let found = duplicated_strings(&heap, 5);
    assert_eq!(found.len(), 1);
    assert!(found[0].text.starts_with("start;line 0;line 1;") && found[0].count > 59_000);
    assert_eq!(heap.display_text(log), found[0].text);
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

/// Object of the program whose property store an object of the engine shares or not. A second
/// object of the program holds texts.
fn with_shared_store(is_shared: bool) -> Heap {
    let mut heap = MadeHeap::new();
    let node = MadeHeap::node;
    let global = node(&mut heap, "object", "global", 40);
    heap.edge(0, "shortcut", "2", global);
    let cache = node(&mut heap, "object", "PatternCache", 24);
    heap.edge(global, "property", "patterns", cache);
    let store = node(&mut heap, "hidden", "system / PropertyArray", 4000);
    heap.edge(cache, "internal", "properties", store);
    let other = node(&mut heap, "object", "CompilationCache", 24);
    heap.edge(global, "property", "compiled", other);
    if is_shared {
        heap.edge(other, "internal", "pattern", store);
    }
    // V8 lists objects in another order each time.
    let texts: Vec<String> =
        (0..40).map(|at| format!("key {}", if is_shared { at } else { 39 - at })).collect();
    for (at, text) in texts.iter().enumerate() {
        let text = node(&mut heap, "string", text, 40 + 8 * (text.len() as u64 % 2));
        let holder = node(&mut heap, "closure", &format!("f{at}"), 64);
        heap.edge(global, "property", &format!("f{at}"), holder);
        heap.edge(holder, "internal", "name", text);
    }
    heap.open(1)
}

#[test]
fn bytes_that_find_their_owner_again_are_no_growth() {
    let (before, after) = (with_shared_store(true), with_shared_store(false));
    let of_cache =
        |heap: &Heap| (0..heap.snapshot().node_count()).find(|&it| heap.name(it) == "PatternCache");
    let bytes = |heap: &Heap| heap.self_bytes(of_cache(heap).unwrap());
    assert_eq!((bytes(&before), bytes(&after)), (24, 4024), "the store counts for its one owner");
    let found = suspects(&[&before, &after], 5);
    assert_eq!((found.growth_bytes, &found.suspects[..]), (0, &[][..]));
}

#[test]
fn texts_are_found_again_wherever_they_are() {
    let (before, after) = (with_shared_store(true), with_shared_store(false));
    let matching = Matching::by_place(&before, &after);
    let is_text = |node: &u32| before.kind(*node).is_string();
    let texts: Vec<u32> = (0..before.snapshot().node_count()).filter(is_text).collect();
    assert_eq!(texts.len(), 40);
    for text in texts {
        let later = matching.later[text as usize];
        assert_ne!(later, NOT_THERE, "{}", before.name(text));
        assert_eq!(before.name(text), after.name(later));
    }
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

/// Function with or without compiled code, and scripts that are alive with their texts.
fn with_code(is_compiled: bool, script_count: u32) -> Heap {
    let mut heap = MadeHeap::new();
    let global = heap.node("object", "global", 40);
    heap.edge(0, "shortcut", "2", global);
    let function = heap.node("closure", "listOnTimeout", 64);
    heap.edge(global, "property", "timers", function);
    let shared = heap.node("code", "listOnTimeout", 56);
    heap.edge(function, "internal", "shared", shared);
    let scripts = heap.node("object", "Array", 16);
    heap.edge(global, "property", "scripts", scripts);
    for at in 0..script_count {
        let script = heap.node_with_id("code", "system / Script", 0, 20_001 + 4 * u64::from(at), false);
        let source = heap.node_with_id("string", "return 1", 5000, 20_003 + 4 * u64::from(at), false);
        heap.edge(scripts, "element", &at.to_string(), script);
        heap.edge(script, "internal", "source", source);
    }
    if is_compiled {
        let constants = heap.node_with_id("code", "(constant pool)", 80, 30_001, false);
        heap.edge(shared, "internal", "constant_pool", constants);
        for at in 0..20 {
            let text = heap.node_with_id("string", "process timer lists %d", 40, 30_003 + 2 * at, false);
            heap.edge(constants, "internal", &at.to_string(), text);
        }
    }
    heap.open(1)
}

#[test]
fn texts_of_compiled_code_are_no_growth_and_those_of_scripts_are() {
    let found = suspects(&[&with_code(false, 0), &with_code(true, 0)], 5);
    assert_eq!((found.growth_bytes, &found.suspects[..]), (0, &[][..]));
    let found = suspects(&[&with_code(false, 1), &with_code(true, 31)], 5);
    assert_eq!((found.suspects[0].name.as_str(), found.growth_bytes), ("globalThis.scripts", 30 * 5000));
}

/// Users by number, by name and in order; a dictionary has their names as keys.
fn registry(user_count: u32) -> Heap {
    let mut heap = MadeHeap::new();
    let global = heap.node("object", "global", 40);
    heap.edge(0, "shortcut", "2", global);
    let registry = heap.node("object", "Registry", 40);
    heap.edge(global, "property", "registry", registry);
    let by_id = heap.node("object", "Map", 32);
    heap.edge(registry, "property", "byId", by_id);
    let table = heap.node("array", "", 16);
    heap.edge(by_id, "internal", "table", table);
    let by_name = heap.node("object", "Object", 24);
    heap.edge(registry, "property", "byName", by_name);
    let keys = heap.node("array", "(object properties)", 16);
    heap.edge(by_name, "internal", "properties", keys);
    for at in 0..user_count {
        let user = heap.node("object", "Object", 56);
        let name = heap.node("string", &format!("user {at}"), 24);
        heap.edge(table, "internal", &at.to_string(), user);
        heap.edge(by_name, "property", &format!("user {at}"), user);
        heap.edge(keys, "internal", &at.to_string(), name);
    }
    heap.open(1)
}

#[test]
fn the_keys_of_another_holder_are_no_second_leak() {
    let found = suspects(&[&registry(20), &registry(400), &registry(800)], 5);
    let names: Vec<&str> = found.suspects.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["Registry.byId of globalThis.registry"], "{found:#?}");
    let first = &found.suspects[0];
    assert_eq!(first.also_held_by.len(), 1, "{found:#?}");
    assert!(first.also_held_by[0].starts_with("Registry.byName"), "{found:#?}");
    assert_eq!(first.growth_bytes, 780 * (56 + 24));
    assert_eq!(first.growth_bytes_at, [380 * (56 + 24), 780 * (56 + 24)]);
}
