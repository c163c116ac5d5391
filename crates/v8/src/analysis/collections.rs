//! Large collections, and collections whose stores are mostly empty.

use super::collection::{Collection, Slots};
use super::heap_view::HeapView;
use super::item_collections;
use super::storage::{count_edges, storage_of};
use super::table_collections;
use crate::{EdgeKind, NodeKind};

/// Order in which collections are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectionOrder {
    /// Most references first.
    Largest,
    /// Most unused bytes first.
    Emptiest,
}

/// Bytes per word in Node. Chrome and Electron compress pointers to half of it.
const WORD_BYTES: u64 = 8;
/// Bytes of an object with some fields of its own, without its store.
const HEADER_BYTES: u64 = 64;
/// Least fill, in percent, that is reported. V8 shrinks stores that are less than a quarter full. A
/// lower fill means that the store holds numbers or was allocated ahead of need.
const LEAST_TOLD_PERCENT: u64 = 10;
/// Least bytes of a store that is listed as empty; smaller ones waste too little.
const LEAST_STORE_BYTES: u64 = 256;

/// Returns the `top` collections in the requested order.
pub fn collections(heap: &impl HeapView, order: CollectionOrder, top: usize) -> Vec<Collection> {
    in_order(all_collections(heap), order, top)
}

/// Returns all collections, by node.
pub(super) fn all_collections(heap: &impl HeapView) -> Vec<Collection> {
    match heap.meta().dialect.as_ref().and_then(|dialect| dialect.table) {
        Some(table) => table_collections::all(heap, table),
        None if heap.meta().dialect.is_some() => item_collections::all(heap),
        None => of_v8(heap),
    }
}

fn of_v8(heap: &impl HeapView) -> Vec<Collection> {
    let mut found = Vec::new();
    let shows_numbers = (0..heap.graph().node_count())
        .any(|node| heap.kind(node) == NodeKind::NUMBER && heap.name(node) == "smi number");
    for node in 0..heap.graph().node_count() {
        if heap.kind(node) != NodeKind::OBJECT {
            continue;
        }
        let name = heap.name(node);
        if !matches!(&*name, "Map" | "Set" | "Array" | "WeakMap" | "WeakSet" | "Object") {
            continue;
        }
        let storage = storage_of(heap, node);
        // A store that belongs to one object alone is counted in that object's self size.
        let beyond_header = heap.self_bytes(node).saturating_sub(HEADER_BYTES);
        let store_bytes = storage.iter().map(|&store| heap.self_bytes(store)).sum::<u64>() + beyond_header;
        let reference_count = match &*name {
            "Array" => count_edges(heap, node, |kind| kind == EdgeKind::ELEMENT),
            "Object" => {
                count_edges(heap, node, |kind| matches!(kind, EdgeKind::PROPERTY | EdgeKind::ELEMENT))
            }
            _ => storage
                .iter()
                .map(|&store| {
                    count_edges(heap, store, |kind| matches!(kind, EdgeKind::INTERNAL | EdgeKind::HIDDEN))
                })
                .sum(),
        };
        // Tables store more than the content. Words per entry: dictionary 3 (key, value, flags),
        // Map 3 (key, value, next of the bucket), Set 2 (key, next).
        let used_words = match &*name {
            "Object" => reference_count.saturating_mul(3),
            "Map" | "WeakMap" => reference_count.saturating_mul(3) / 2,
            "Set" | "WeakSet" => reference_count.saturating_mul(2),
            _ => reference_count,
        };
        let used = used_words.saturating_mul(WORD_BYTES);
        let fill_percent = used.saturating_mul(100).checked_div(store_bytes).unwrap_or(100).min(100);
        let is_told = shows_numbers || fill_percent >= LEAST_TOLD_PERCENT || store_bytes == 0;
        let count = store_bytes / WORD_BYTES;
        let slots = Slots { count, used: used_words.min(count), slot_bytes: WORD_BYTES };
        found.push(Collection {
            node,
            reference_count,
            store_bytes,
            retained_bytes: heap.retained_bytes(node),
            fill_percent: is_told.then_some(fill_percent),
            slots: is_told.then_some(slots),
        });
    }
    found
}

/// Sorts collections by the number of what they hold.
pub(super) fn sort_by_size(found: &mut [Collection]) {
    found.sort_by_key(|found| (std::cmp::Reverse((found.reference_count, found.retained_bytes)), found.node));
}

pub(super) fn in_order(mut found: Vec<Collection>, order: CollectionOrder, top: usize) -> Vec<Collection> {
    match order {
        CollectionOrder::Largest => sort_by_size(&mut found),
        CollectionOrder::Emptiest => {
            found.retain(|found| found.store_bytes >= LEAST_STORE_BYTES);
            // Collections with an unknown fill sort last.
            let room = |found: &Collection| {
                let fill_percent = found.fill_percent?;
                Some(
                    found.store_bytes
                        - (u128::from(found.store_bytes) * u128::from(fill_percent) / 100) as u64,
                )
            };
            found.sort_by_key(|found| {
                (std::cmp::Reverse(room(found)), std::cmp::Reverse(found.store_bytes), found.node)
            });
        }
    }
    found.truncate(top);
    found
}
