//! Matching of objects that replaced others. A changed immutable state is a new object, and the
//! field that held the old one holds the new one. The growth of the field matters, rather than that
//! of one object.

use rustc_hash::FxHashMap;

use super::super::storage::is_storage;
use super::{HeapView, Matching, NOT_THERE};
use crate::EdgeKind;

/// Targets that the other snapshot lacks, by edge kind and field name.
type Fields<'a> = FxHashMap<(EdgeKind, std::borrow::Cow<'a, [u8]>), u32>;

impl Matching {
    /// Adds the nodes that replaced each other: each is in one snapshot only, and one object
    /// refers to both by the same field name.
    pub(crate) fn with_successors(mut self, before: &impl HeapView, after: &impl HeapView) -> Self {
        let matched = (0..self.later.len() as u32).zip(self.later.iter().copied());
        let mut pairs: Vec<(u32, u32)> = matched.filter(|&(_, new)| new != NOT_THERE).collect();
        while let Some((old, new)) = pairs.pop() {
            let Some(old_fields) = fields(before, old, &self.later) else { continue };
            let Some(new_fields) = fields(after, new, &self.earlier) else { continue };
            for (name, &a) in &old_fields {
                let Some(&b) = new_fields.get(name) else { continue };
                let is_free = self.later[a as usize] == NOT_THERE && self.earlier[b as usize] == NOT_THERE;
                let is_alike = before.kind(a) == after.kind(b)
                    && (before.kind(a).is_string()
                        || before.string_bytes(before.name_index(a))
                            == after.string_bytes(after.name_index(b)));
                if is_free && is_alike {
                    self.pair(a, b);
                    pairs.push((a, b));
                }
            }
        }
        self
    }
}

/// Returns the fields of a node whose targets the other snapshot lacks, or `None` if no such field
/// exists.
fn fields<'a>(heap: &'a impl HeapView, node: u32, other: &[u32]) -> Option<Fields<'a>> {
    let graph = heap.graph();
    let is_missing = |edge: &u32| other[graph.target(*edge) as usize] == NOT_THERE;
    let mut edges = graph.edges(node).filter(is_missing).peekable();
    edges.peek()?;
    if is_storage(heap, node) {
        return None;
    }
    let named = edges.filter(|&edge| {
        matches!(heap.edge_kind(edge), EdgeKind::PROPERTY | EdgeKind::CONTEXT | EdgeKind::INTERNAL)
    });
    let fields: Fields<'a> = named
        .map(|edge| {
            ((heap.edge_kind(edge), heap.string_bytes(heap.edge_name_index(edge))), graph.target(edge))
        })
        .collect();
    (!fields.is_empty()).then_some(fields)
}
