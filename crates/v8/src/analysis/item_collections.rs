//! Collections that refer to their items themselves, of languages whose heaps have no stores as
//! nodes of their own. Where the header has the layout of a class, the slots follow from the size.

use super::collection::{Collection, Slots};
use super::collection_classes::CollectionClasses;
use super::heap_view::HeapView;
use super::storage::count_edges;
use crate::EdgeKind;

/// Name of a reference to a key.
const KEY: &[u8] = b"key";

/// Returns all collections.
pub(super) fn all(heap: &impl HeapView) -> Vec<Collection> {
    let mut classes = CollectionClasses::of(heap);
    let has_attributes = attributes(heap);
    let key = (0..heap.string_count()).find(|&number| *heap.string_bytes(number) == *KEY);
    let collection = |node: u32| {
        let slots = if has_attributes[node as usize] { None } else { slots(heap, node, key) };
        Collection {
            node,
            reference_count: count_edges(heap, node, |kind| kind == EdgeKind::ELEMENT),
            store_bytes: heap.self_bytes(node),
            retained_bytes: heap.retained_bytes(node),
            fill_percent: slots.filter(|slots| slots.count > 0).map(Slots::fill_percent),
            slots,
        }
    };
    (0..heap.graph().node_count()).filter(|&node| classes.is_collection(heap, node)).map(collection).collect()
}

/// Whether each node is the attributes of another object, and no collection of the program.
fn attributes(heap: &impl HeapView) -> Vec<bool> {
    let mut are_attributes = vec![false; heap.graph().node_count() as usize];
    let Some(language) = heap.meta().dialect.as_ref().map(|dialect| dialect.language) else {
        return are_attributes;
    };
    let mut known = vec![None; heap.string_count() as usize];
    for node in 0..heap.graph().node_count() {
        for edge in heap.graph().edges(node).filter(|&edge| heap.edge_kind(edge) == EdgeKind::INTERNAL) {
            let name = heap.edge_name_index(edge);
            let Some(known) = known.get_mut(name as usize) else { continue };
            if *known.get_or_insert_with(|| language.leads_to_attributes(&heap.string(name))) {
                are_attributes[heap.graph().target(edge) as usize] = true;
            }
        }
    }
    are_attributes
}

/// Slots of a collection; `None` if the header does not tell its layout. `key`: number of the name
/// of references to keys.
fn slots(heap: &impl HeapView, node: u32, key: Option<u32>) -> Option<Slots> {
    let layout = heap.meta().dialect.as_ref()?.own_slots(&heap.name(node))?;
    let (count, slot_bytes) = layout.of_size(heap.self_bytes(node))?;
    let is_item = |&edge: &u32| match heap.edge_kind(edge) {
        EdgeKind::INTERNAL if layout.has_keys() => Some(heap.edge_name_index(edge)) == key,
        kind => kind == EdgeKind::ELEMENT && !layout.has_keys(),
    };
    let used = heap.graph().edges(node).filter(is_item).count() as u64;
    Some(Slots { count, used: used.min(count), slot_bytes })
}
