//! The stores of collections: elements, properties, tables.

use super::heap_view::{EdgeName, HeapView};
use crate::{EdgeKind, NodeKind};

/// Whether the node is the store of a collection.
pub(super) fn is_storage(heap: &impl HeapView, node: u32) -> bool {
    heap.kind(node) == NodeKind::ARRAY
}

/// The stores that belong to an object.
pub(super) fn storage_of(heap: &impl HeapView, node: u32) -> Vec<u32> {
    let graph = heap.graph();
    graph
        .edges(node)
        .filter(|&edge| heap.edge_kind(edge) == EdgeKind::INTERNAL && is_storage(heap, graph.target(edge)))
        .filter(|&edge| match heap.edge_name(edge) {
            EdgeName::Name(name) => matches!(&*name, "elements" | "properties" | "table"),
            EdgeName::Index(_) => false,
        })
        .map(|edge| graph.target(edge))
        .collect()
}
