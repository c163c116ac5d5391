//! Large collections, and those that keep room for much more than they hold.

use super::heap_view::HeapView;
use super::storage::storage_of;
use crate::{EdgeKind, NodeKind};

/// A Map, Set, Array or Object used as a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collection {
    /// The node.
    pub node: u32,
    /// References to objects and strings in it; small integers are not in a snapshot, so that there
    /// may be more.
    pub reference_count: u64,
    /// The size of its store.
    pub store_bytes: u64,
    /// What would be freed with it.
    pub retained_bytes: u64,
    /// The share of the store that the references take, in percent, at most 100; nothing where they
    /// take so little that the rest may be small integers, which a snapshot does not show.
    pub fill_percent: Option<u64>,
}

/// Which collections are listed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectionOrder {
    /// Those with most references.
    Largest,
    /// Those whose stores have most room that nothing is known to be in.
    Emptiest,
}

/// Words are this wide in Node; Chrome and Electron compress them to half of it.
const WORD_BYTES: u64 = 8;
/// An object with some fields of its own has this size without its store.
const HEADER_BYTES: u64 = 64;
/// V8 shrinks what is less than a quarter full. What shows less than this holds numbers, or was
/// made with room beforehand.
const LEAST_TOLD_PERCENT: u64 = 10;
/// A smaller store wastes too little to be listed as empty.
const LEAST_STORE_BYTES: u64 = 256;

/// The `top` collections in the order that is asked for.
pub fn collections(heap: &impl HeapView, order: CollectionOrder, top: usize) -> Vec<Collection> {
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
        // Where a store belongs to its object alone, its bytes count as the object's.
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
        // Tables have more than the content: a dictionary's entry has a key, a value and flags, a
        // Map's a key, a value and the next of its bucket, a Set's a key and the next.
        let used_words = match &*name {
            "Object" => reference_count.saturating_mul(3),
            "Map" | "WeakMap" => reference_count.saturating_mul(3) / 2,
            "Set" | "WeakSet" => reference_count.saturating_mul(2),
            _ => reference_count,
        };
        let used = used_words.saturating_mul(WORD_BYTES);
        let fill_percent = used.saturating_mul(100).checked_div(store_bytes).unwrap_or(100).min(100);
        let is_told = shows_numbers || fill_percent >= LEAST_TOLD_PERCENT || store_bytes == 0;
        let fill_percent = is_told.then_some(fill_percent);
        let retained_bytes = heap.retained_bytes(node);
        found.push(Collection { node, reference_count, store_bytes, retained_bytes, fill_percent });
    }
    match order {
        CollectionOrder::Largest => {
            found.sort_by_key(|found| {
                (std::cmp::Reverse((found.reference_count, found.retained_bytes)), found.node)
            });
        }
        CollectionOrder::Emptiest => {
            found.retain(|found| found.store_bytes >= LEAST_STORE_BYTES);
            // Those last of which nobody knows.
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

fn count_edges(heap: &impl HeapView, node: u32, is_counted: impl Fn(EdgeKind) -> bool) -> u64 {
    let graph = heap.graph();
    graph
        .edges(node)
        .filter(|&edge| is_counted(heap.edge_kind(edge)))
        // What the engine shares (holes, undefined, maps) is no content.
        .filter(|&edge| {
            !matches!(
                heap.kind(graph.target(edge)),
                NodeKind::HIDDEN | NodeKind::OBJECT_SHAPE | NodeKind::CODE
            )
        })
        .count() as u64
}
