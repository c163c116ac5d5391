//! Growth below the rows of roots of other languages.

use super::super::{Confidence, suspects};
use super::made_heap::MadeHeap;
use crate::devtools::Heap;

/// Heap whose row has nodes of a chain of lists, the last of which has items.
fn chain_below(row: &str, items: u64) -> Heap {
    let mut heap = MadeHeap::new();
    let mut holder = heap.node_with_id("native", row, 0, 3, false);
    heap.edge(0, "property", row, holder);
    for number in 0..12 {
        let list = heap.node_with_id("object", "list", 56, 101 + 16 * number, false);
        heap.edge(holder, "property", "next", list);
        holder = list;
    }
    for number in 0..items {
        let item = heap.node_with_id("object", "app.Item", 48, 4097 + 16 * number, false);
        heap.edge(holder, "element", &number.to_string(), item);
    }
    heap.with_addresses().open(1)
}

#[test]
fn what_only_garbage_holds_is_no_leak_however_deep_it_is() {
    let grown = |row: &str| {
        let heaps = [20, 220, 420].map(|items| chain_below(row, items));
        let found = suspects(&heaps.iter().collect::<Vec<_>>(), 3);
        (found.suspects[0].name.clone(), found.suspects[0].confidence)
    };
    let (name, confidence) = grown("(garbage, not yet collected)");
    assert_eq!(confidence, Confidence::Low, "{name}");
    let (name, confidence) = grown("(modules)");
    assert_eq!(name, "(modules): next.next.next…next.next.next (list)");
    assert!(confidence > Confidence::Low);
}

/// Heap of four lists in modules of their own. Each item is in two of them.
fn shared_items(items: u64) -> Heap {
    let mut heap = MadeHeap::new();
    let modules = heap.node_with_id("native", "(modules)", 0, 3, false);
    heap.edge(0, "property", "(modules)", modules);
    let lists = [0, 1, 2, 3].map(|number| {
        let name = format!("module part{number}");
        let module = heap.node_with_id("object", &name, 72, 101 + 16 * number, false);
        heap.edge(modules, "property", &name, module);
        let list = heap.node_with_id("object", "list", 56, 1001 + 16 * number, false);
        heap.edge(module, "property", "ITEMS", list);
        list
    });
    for number in 0..items {
        let item = heap.node_with_id("object", "app.Item", 48, 4097 + 16 * number, false);
        for list in [number, number + 1].map(|it| lists[it as usize % 4]) {
            heap.edge(list, "element", &number.to_string(), item);
        }
    }
    heap.with_addresses().open(1)
}

#[test]
fn what_several_modules_share_is_told_by_one_that_holds_it() {
    let heaps = [20, 220, 420].map(shared_items);
    let found = suspects(&heaps.iter().collect::<Vec<_>>(), 3);
    let first = &found.suspects[0];
    assert!(first.name.starts_with("module part") && first.name.ends_with(": ITEMS (list)"), "{first:#?}");
    assert_eq!(first.also_held_by.len(), 3, "{first:#?}");
}
