//! Collections of languages whose heaps show the tables: how many of their slots are in use.

use super::collection::{Collection, Slots};
use super::collection_classes::CollectionClasses;
use super::heap_view::HeapView;
use super::storage::is_storage;
use crate::EdgeKind;
use crate::format::Table;

/// Returns all collections that no other collection is made of.
pub(super) fn all(heap: &impl HeapView, table: Table) -> Vec<Collection> {
    let mut classes = CollectionClasses::of(heap);
    let nodes = (0..heap.graph().node_count()).filter(|&node| classes.is_collection(heap, node));
    // A store belongs to one collection: each is visited once.
    let mut is_visited = vec![false; heap.graph().node_count() as usize];
    nodes.map(|node| collection(heap, table, node, &mut is_visited)).collect()
}

fn collection(heap: &impl HeapView, table: Table, node: u32, is_visited: &mut [bool]) -> Collection {
    let graph = heap.graph();
    let (mut reference_count, mut store_bytes) = (0, 0_u64);
    let mut slots = Slots { slot_bytes: table.slot_bytes, ..Slots::default() };
    let mut pending = vec![node];
    while let Some(at) = pending.pop() {
        let mut used = 0;
        for edge in graph.edges(at).filter(|&edge| heap.edge_kind(edge) != EdgeKind::WEAK) {
            let target = graph.target(edge);
            used += u64::from(heap.edge_kind(edge) == EdgeKind::ELEMENT);
            if !is_storage(heap, target) {
                reference_count += u64::from(at != node);
            } else if !std::mem::replace(&mut is_visited[target as usize], true) {
                pending.push(target);
            }
        }
        if at != node {
            let bytes = heap.self_bytes(at);
            store_bytes = store_bytes.saturating_add(bytes);
            if heap.name(at).ends_with("[]") {
                let count = bytes.saturating_sub(table.header_bytes) / table.slot_bytes;
                slots.count = slots.count.saturating_add(count);
                // The last slot may be the room up to a multiple of 8 bytes.
                slots.used = slots.used.saturating_add(used.min(count));
            }
        }
    }
    Collection {
        node,
        reference_count,
        store_bytes,
        retained_bytes: heap.retained_bytes(node),
        fill_percent: (slots.count > 0).then(|| slots.fill_percent()),
        slots: table.has_equal_slots().then_some(slots),
    }
}
