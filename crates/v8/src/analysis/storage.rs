//! Classification of nodes: stores of collections (elements, properties, tables), objects whose
//! fields are keys, and the engine's own objects.

use super::heap_view::{EdgeName, HeapView};
use crate::objects::Objects;
use crate::{EdgeKind, NodeKind};

/// Number of fields beyond which a plain object counts as a dictionary.
const MAX_FIELDS: usize = 24;
/// Least number of fields from which their names are judged.
const LEAST_KEYS: usize = 3;
/// Largest number of fields that are examined.
const MAX_FIELDS_LOOKED_AT: usize = 64;

/// Whether the node's fields are keys of a program's data, rather than names that a programmer
/// gave.
pub(super) fn is_dictionary<H: Objects + ?Sized>(heap: &H, node: u32) -> bool {
    let edges = heap.edges(node);
    if heap.kind(node) != NodeKind::OBJECT || edges.len() < LEAST_KEYS {
        return false;
    }
    let is_plain = *heap.string_bytes(heap.name_index(node)) == *b"Object";
    if edges.len() > MAX_FIELDS && is_plain {
        return !has_methods(heap, node);
    }
    let mut first = None;
    let (mut count, mut data_count) = (0, 0);
    for edge in edges.take(MAX_FIELDS_LOOKED_AT) {
        let target = heap.target(edge);
        if heap.edge_kind(edge) != EdgeKind::PROPERTY {
            continue;
        }
        let key = heap.string_bytes(heap.edge_name_index(edge));
        if *key == *b"__proto__" {
            continue;
        }
        let class = (heap.kind(target), heap.name_index(target));
        if class.0 != NodeKind::OBJECT || *first.get_or_insert(class) != class {
            return false;
        }
        count += 1;
        data_count += usize::from(is_data(&key));
    }
    count >= LEAST_KEYS && data_count * 2 > count && (is_plain || count > MAX_FIELDS)
}

/// Whether at least a third of the fields are functions with names that a programmer gave. Such an
/// object is a server or client built field by field, not a dictionary.
fn has_methods<H: Objects + ?Sized>(heap: &H, node: u32) -> bool {
    let (mut count, mut method_count) = (0, 0);
    for edge in heap.edges(node).take(MAX_FIELDS_LOOKED_AT) {
        if heap.edge_kind(edge) == EdgeKind::PROPERTY {
            let is_function = heap.kind(heap.target(edge)) == NodeKind::CLOSURE;
            count += 1;
            method_count +=
                usize::from(is_function && !is_data(&heap.string_bytes(heap.edge_name_index(edge))));
        }
    }
    method_count * 3 >= count
}

/// Whether a programmer would hardly name a field like this: `tenant-17`, `bob@example.org`,
/// `/srv/app.js`.
fn is_data(key: &[u8]) -> bool {
    let is_marked = matches!(key.first(), Some(b'<' | b'#' | b'_'));
    !is_marked && key.iter().any(|byte| !byte.is_ascii_alphabetic() && !matches!(byte, b'_' | b'$'))
}

/// Whether the engine made the node for itself. From Node 26 on some of these nodes are called
/// native.
pub(super) fn is_of_the_engine<H: Objects + ?Sized>(heap: &H, node: u32) -> bool {
    match heap.kind(node) {
        NodeKind::HIDDEN | NodeKind::CODE | NodeKind::OBJECT_SHAPE => true,
        NodeKind::NATIVE => {
            let name = heap.string_bytes(heap.name_index(node));
            name.starts_with(b"system / ")
                && !matches!(&*name, b"system / JSArrayBufferData" | b"system / ExternalStringData")
        }
        _ => false,
    }
}

/// Whether the node is the store of a collection.
pub(super) fn is_storage(heap: &impl HeapView, node: u32) -> bool {
    heap.kind(node) == NodeKind::ARRAY
}

/// Returns the stores that belong to an object.
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

/// Number of an object's references of some kinds to its contents.
pub(super) fn count_edges(heap: &impl HeapView, node: u32, is_counted: impl Fn(EdgeKind) -> bool) -> u64 {
    let graph = heap.graph();
    graph
        .edges(node)
        .filter(|&edge| is_counted(heap.edge_kind(edge)))
        // Values that the engine shares (holes, undefined, maps) are not content.
        .filter(|&edge| {
            !matches!(
                heap.kind(graph.target(edge)),
                NodeKind::HIDDEN | NodeKind::OBJECT_SHAPE | NodeKind::CODE
            )
        })
        .count() as u64
}
