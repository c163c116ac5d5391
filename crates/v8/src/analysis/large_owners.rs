//! Likely suspects of a single snapshot: objects that hold very many objects of one class.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::classes::{Classes, Names};
use super::heap_view::HeapView;
use super::naming::{Called, Naming, is_global_class};
use super::path::PathStep;
use super::retaining_paths::path_from_root;
use super::scripts::is_of_a_package;
use super::storage::is_storage;
use crate::NodeKind;

/// Object that holds many others of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeOwner {
    /// Name of the object.
    pub called: Called,
    /// Node of the object.
    pub node: u32,
    /// Bytes that would be freed with the object.
    pub retained_bytes: u64,
    /// Number of objects that it holds, directly or as links of a chain.
    pub count: u64,
    /// Most frequent class of the held objects.
    pub class: String,
    /// Number of held objects of that class.
    pub class_count: u64,
    /// Path from a root to the object.
    pub path: Vec<PathStep>,
}

/// Least number of held objects; fewer are not an unbounded collection.
const LEAST_COUNT: u64 = 50;
/// Least retained bytes that are worth a line.
const LEAST_BYTES: u64 = 1024;

/// Returns the `top` owners by retained bytes, weighted by two factors: how uniform their objects
/// are, and whether the owner belongs to the program.
pub fn large_owners<H: HeapView>(heap: &H, naming: &Naming<'_, H>, top: usize) -> Vec<LargeOwner> {
    let dominators = heap.dominators();
    let node_count = heap.graph().node_count() as usize;
    let mut names = Names::default();
    let mut classes = Classes::of(heap);
    let class: Vec<u32> = (0..node_count as u32).map(|node| classes.class(heap, &mut names, node)).collect();

    // Object that holds each node. Stores and links of the node's own class are skipped.
    let mut holder = vec![0u32; node_count];
    let mut count = vec![0u32; node_count];
    for &node in &dominators.order()[1..] {
        let idom = dominators.idom(node);
        let above = if is_storage(heap, idom) { holder[idom as usize] } else { idom };
        let is_link = heap.kind(above) == heap.kind(node) && class[above as usize] == class[node as usize];
        holder[node as usize] = if is_link { holder[above as usize] } else { above };
        if is_item(heap, node) {
            count[holder[node as usize] as usize] += 1;
        }
    }
    let mut by_class: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for node in 0..node_count as u32 {
        let holder = holder[node as usize];
        if is_item(heap, node) && u64::from(count[holder as usize]) >= LEAST_COUNT {
            *by_class.entry((holder, class[node as usize])).or_default() += 1;
        }
    }
    let mut main: FxHashMap<u32, (u64, u32)> = FxHashMap::default();
    for ((holder, class), count) in by_class {
        // Between equal counts, classes of objects say more than strings and groups such as
        // `(array)`.
        let rank = |count: u64, class: u32| (count, !names.name(class).starts_with('('), Reverse(class));
        match main.entry(holder) {
            Entry::Occupied(mut best) if rank(count, class) > rank(best.get().0, best.get().1) => {
                best.insert((count, class));
            }
            Entry::Occupied(_) => {}
            Entry::Vacant(none) => {
                none.insert((count, class));
            }
        }
    }
    let mut owners: Vec<(f64, u32)> = main
        .iter()
        .filter(|&(&node, _)| can_own(heap, node) && heap.retained_bytes(node) >= LEAST_BYTES)
        .map(|(&node, &(class_count, _))| {
            let alike = class_count as f64 / count[node as usize] as f64;
            let called = naming.call(node);
            let is_of_the_program = called.is_of_the_program() && !is_table_of_a_package(&called);
            let of_the_program = if is_of_the_program { 1.0 } else { 0.1 };
            (heap.retained_bytes(node) as f64 * alike * alike * of_the_program, node)
        })
        .collect();
    owners.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    owners.truncate(top);
    owners
        .into_iter()
        .map(|(_, node)| {
            let (class_count, class) = main[&node];
            LargeOwner {
                called: naming.call(node),
                node,
                retained_bytes: heap.retained_bytes(node),
                count: count[node as usize].into(),
                class: names.name(class).to_owned(),
                class_count,
                path: path_from_root(heap, naming, node),
            }
        })
        .collect()
}

/// Whether the object is the `exports` of a package's module: a table that was loaded with it.
fn is_table_of_a_package(called: &Called) -> bool {
    called.fields == ["exports"] && called.place.as_ref().is_some_and(|place| is_of_a_package(&place.script))
}

fn is_item(heap: &impl HeapView, node: u32) -> bool {
    match heap.kind(node) {
        NodeKind::OBJECT
        | NodeKind::CLOSURE
        | NodeKind::STRING
        | NodeKind::CONS_STRING
        | NodeKind::SLICED_STRING
        | NodeKind::REGEXP => true,
        NodeKind::HIDDEN => heap.name(node) == "system / PromiseReaction",
        _ => false,
    }
}

fn can_own(heap: &impl HeapView, node: u32) -> bool {
    match heap.kind(node) {
        // A realm's functions and prototypes hang from its global object: many of one class, but no
        // leak.
        NodeKind::OBJECT => !is_global_class(&heap.name(node)),
        _ => false,
    }
}
