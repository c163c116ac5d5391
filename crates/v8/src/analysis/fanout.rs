//! Objects with very many references.

use rustc_hash::FxHashMap;

use super::heap_view::HeapView;
use crate::{EdgeKind, NodeKind};

/// Object with many references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fanout {
    /// Node of the object.
    pub node: u32,
    /// Number of references that keep their targets alive.
    pub reference_count: u64,
    /// Most frequent class among the targets.
    pub main_class: String,
    /// Number of references to objects of that class.
    pub main_class_count: u64,
    /// Bytes that would be freed with the object.
    pub retained_bytes: u64,
}

/// Returns the `top` nodes with most references. Code, hidden objects, shapes and the snapshot's
/// synthetic groups are left out.
pub fn fanout(heap: &impl HeapView, top: usize) -> Vec<Fanout> {
    let graph = heap.graph();
    let mut found: Vec<(u64, u32)> = (0..graph.node_count())
        .filter(|&node| {
            !matches!(
                heap.kind(node),
                NodeKind::CODE | NodeKind::SYNTHETIC | NodeKind::HIDDEN | NodeKind::OBJECT_SHAPE
            )
        })
        .map(|node| {
            let strong = graph.edges(node).filter(|&edge| heap.edge_kind(edge) != EdgeKind::WEAK).count();
            (strong as u64, node)
        })
        .filter(|&(count, _)| count > 0)
        .collect();
    found.sort_by_key(|&(count, node)| (std::cmp::Reverse(count), node));
    found.truncate(top);
    found
        .into_iter()
        .map(|(reference_count, node)| {
            let mut classes: FxHashMap<std::borrow::Cow<'_, str>, u64> = FxHashMap::default();
            for edge in graph.edges(node).filter(|&edge| heap.edge_kind(edge) != EdgeKind::WEAK) {
                *classes.entry(heap.class_name(graph.target(edge))).or_default() += 1;
            }
            let main = classes.into_iter().max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0)));
            let (main_class, main_class_count) = main.unwrap_or_default();
            Fanout {
                node,
                reference_count,
                main_class: main_class.into_owned(),
                main_class_count,
                retained_bytes: heap.retained_bytes(node),
            }
        })
        .collect()
}
