//! Tests with heaps made by hand, and with random ones.

mod addresses;
mod growth;
mod made_heap;
mod matching;
mod names;
mod rows;
mod waste;

use made_heap::MadeHeap;

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
