//! Objects that no strong reference leads to. They are held weakly, or by the engine without a
//! reference in the snapshot.

use rustc_hash::FxHashMap;

use heapr_graph::reachable;

use super::heap_view::HeapView;
use crate::EdgeKind;

/// Unreachable objects of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreachable {
    /// Name of the class.
    pub class: String,
    /// Number of objects.
    pub count: u64,
    /// Sum of the objects' self sizes, in bytes.
    pub self_bytes: u64,
    /// Node of the largest object.
    pub example: u32,
}

/// Returns the `top` classes of unreachable objects by bytes.
pub fn unreachable(heap: &impl HeapView, top: usize) -> Vec<Unreachable> {
    let root = heap.dominators().root();
    let reached = reachable(heap.graph(), [root], |edge, _, _| heap.edge_kind(edge) != EdgeKind::WEAK);
    let mut classes: FxHashMap<std::borrow::Cow<'_, str>, Unreachable> = FxHashMap::default();
    for node in (0..heap.graph().node_count()).filter(|&node| !reached[node as usize]) {
        let bytes = heap.self_bytes(node);
        let class = classes.entry(heap.class_name(node)).or_insert_with_key(|class| Unreachable {
            class: class.clone().into_owned(),
            count: 0,
            self_bytes: 0,
            example: node,
        });
        class.count += 1;
        class.self_bytes = class.self_bytes.saturating_add(bytes);
        if bytes > heap.self_bytes(class.example) {
            class.example = node;
        }
    }
    let mut found: Vec<Unreachable> = classes.into_values().collect();
    found.sort_by(|a, b| {
        (b.self_bytes, b.count).cmp(&(a.self_bytes, a.count)).then_with(|| a.class.cmp(&b.class))
    });
    found.truncate(top);
    found
}
