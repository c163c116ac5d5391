//! Objects as rows.

use heapr_v8::DomState;
use heapr_v8::devtools::{BASE_SYSTEM_DISTANCE, Heap};
use serde::Serialize;

/// Characters of a name in a list.
const NAME_CHARS_MAX: usize = 200;

/// An object.
#[derive(Debug, Serialize)]
pub(crate) struct ObjectJson {
    id: u64,
    name: String,
    class: String,
    r#type: String,
    /// -1: nothing leads here.
    distance: i32,
    /// Only system roots lead here.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    system: bool,
    shallow_bytes: u64,
    retained_bytes: u64,
    child_count: usize,
    dom_state: Option<String>,
}

impl ObjectJson {
    /// With the number of its children in another tree than that of references.
    pub(crate) fn with_children(self, child_count: usize) -> Self {
        Self { child_count, ..self }
    }
}

/// A name for a list: cut.
pub(crate) fn short(text: &str) -> String {
    match text.char_indices().nth(NAME_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A row of an object.
pub(crate) fn object(heap: &Heap, node: u32) -> ObjectJson {
    let snapshot = heap.snapshot();
    let classes = heap.classes();
    let distance = heap.distances()[node as usize];
    let is_system = distance >= BASE_SYSTEM_DISTANCE;
    ObjectJson {
        id: snapshot.id(node),
        name: short(&heap.display_text(node)),
        class: classes.get(classes.of_node(node)).name_text().into_owned(),
        r#type: snapshot.meta().node_kind_name(snapshot.kind(node)).to_owned(),
        distance: if is_system { distance - BASE_SYSTEM_DISTANCE } else { distance.max(-1) },
        system: is_system,
        shallow_bytes: snapshot.self_bytes(node),
        retained_bytes: heap.retained()[node as usize],
        child_count: snapshot.graph().edges(node).len(),
        dom_state: match snapshot.dom_state(node) {
            DomState::Unknown => None,
            state => Some(format!("{state:?}").to_lowercase()),
        },
    }
}

/// An object and the edge that leads to it, or from it.
#[derive(Debug, Serialize)]
pub(crate) struct EdgeJson {
    edge: String,
    edge_type: String,
    #[serde(flatten)]
    object: ObjectJson,
}

/// A row of an edge, with the object at its other end.
pub(crate) fn edge(heap: &Heap, edge: u32, other: u32) -> EdgeJson {
    let snapshot = heap.snapshot();
    EdgeJson {
        edge: short(&heap.edge_text(edge)),
        edge_type: snapshot.meta().edge_kind_name(snapshot.edge_kind(edge)).to_owned(),
        object: object(heap, other),
    }
}
