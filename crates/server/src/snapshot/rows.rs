//! Objects as rows.

use crate::snapshot_file::{NAME_CHARS_MAX, SnapshotFile};
use heapr_v8::DomState;
use heapr_v8::devtools::{BASE_SYSTEM_DISTANCE, Heap};
use heapr_v8::view::{FieldRow, ObjectRow, Objects};
use serde::Serialize;

/// An object.
#[derive(Debug, Serialize)]
pub(crate) struct HeapObject {
    id: u64,
    name: String,
    class: String,
    r#type: String,
    /// Distance from the roots; -1: unreachable.
    distance: i32,
    /// Whether only system roots reach the object.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    system: bool,
    shallow_bytes: u64,
    retained_bytes: u64,
    /// Bytes of native memory that would be freed with the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    native_bytes: Option<u64>,
    child_count: u32,
    dom_state: Option<String>,
}

/// Name for a list, cut to [`NAME_CHARS_MAX`] characters.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Distance for rows, and whether only system roots reach the object.
pub(crate) fn distance(distance: i32) -> (i32, bool) {
    let is_system = distance >= BASE_SYSTEM_DISTANCE;
    (if is_system { distance - BASE_SYSTEM_DISTANCE } else { distance.max(-1) }, is_system)
}

/// Row of an object of a file.
pub(crate) fn object(file: &SnapshotFile, row: &ObjectRow) -> HeapObject {
    let native_bytes = file.native().map(|native| native.of_node(row.node));
    HeapObject { native_bytes, ..object_of(file.view.objects(), row) }
}

fn object_of(objects: &dyn Objects, row: &ObjectRow) -> HeapObject {
    let (distance, system) = distance(row.distance);
    HeapObject {
        id: row.id,
        name: short(&row.name),
        class: row.class.clone(),
        r#type: row.kind.clone(),
        distance,
        system,
        shallow_bytes: row.self_bytes,
        retained_bytes: row.retained_bytes,
        native_bytes: None,
        child_count: row.field_count,
        dom_state: match objects.dom_state(row.node) {
            DomState::Unknown => None,
            state => Some(format!("{state:?}").to_lowercase()),
        },
    }
}

/// Row of an object of a heap in memory.
pub(crate) fn heap_object(heap: &Heap, node: u32) -> HeapObject {
    let snapshot = heap.snapshot();
    let classes = heap.classes();
    let row = ObjectRow {
        node,
        id: snapshot.id(node),
        name: heap.display_text(node),
        class: classes.get(classes.of_node(node)).name_text().into_owned(),
        kind: snapshot.meta().node_kind_name(snapshot.kind(node)).to_owned(),
        distance: heap.distances()[node as usize],
        self_bytes: snapshot.self_bytes(node),
        retained_bytes: heap.retained()[node as usize],
        field_count: snapshot.graph().edges(node).len() as u32,
    };
    object_of(heap, &row)
}

impl HeapObject {
    /// Replaces the number of children by that in another tree than the references.
    pub(crate) fn with_children(self, child_count: u32) -> Self {
        Self { child_count, ..self }
    }
}

/// An object and the edge that leads to it, or from it.
#[derive(Debug, Serialize)]
pub(crate) struct EdgeRow {
    edge: String,
    edge_type: &'static str,
    #[serde(flatten)]
    object: HeapObject,
}

/// Row of an edge, with the object at its other end.
pub(crate) fn edge(file: &SnapshotFile, row: &FieldRow) -> EdgeRow {
    let (distance, system) = distance(row.distance);
    EdgeRow {
        edge: short(&row.field),
        edge_type: row.edge_kind,
        object: HeapObject { distance, system, ..object(file, &row.object) },
    }
}
