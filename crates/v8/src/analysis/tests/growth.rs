//! Growing owners, and the names under which they are reported.

use super::super::matching::NOT_THERE;
use super::super::{Confidence, Doubt, MatchedBy, Matching, duplicated_strings, suspects};
use super::made_heap::MadeHeap;
use super::{module, program};
use crate::devtools::Heap;
use crate::objects::Objects;

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
    assert_eq!(first.growth_by_interval().collect::<Vec<_>>(), [640, 640]);
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
    let matching = Matching::by_graph(&before, &after);
    let is_text = |node: &u32| before.kind(*node).is_string();
    let texts: Vec<u32> = (0..before.snapshot().node_count()).filter(is_text).collect();
    assert_eq!(texts.len(), 40);
    for text in texts {
        let later = matching.later[text as usize];
        assert_ne!(later, NOT_THERE, "{}", before.name(text));
        assert_eq!(before.name(text), after.name(later));
    }
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
