//! Edges that count for dominators because they keep their target alive.

use crate::devtools::page_objects::page_objects;
use crate::devtools::weak_map_edges::WeakMapEdges;
use crate::node_set::NodeSet;
use crate::{EdgeKind, NodeKind, Snapshot};

/// Rule for [`heapr_graph::Dominators::of`].
pub(crate) struct EssentialEdges<'a> {
    snapshot: &'a Snapshot,
    weak_maps: &'a WeakMapEdges,
    page_objects: &'a NodeSet,
    /// Objects of the page that roots other than the root itself hold.
    held_by_roots: Option<&'a NodeSet>,
}

impl<'a> EssentialEdges<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        weak_maps: &'a WeakMapEdges,
        page_objects: &'a NodeSet,
    ) -> Self {
        Self { snapshot, weak_maps, page_objects, held_by_roots: None }
    }

    /// Adapts the rule to snapshots in which no shortcut of the root leads to the page's objects.
    /// Other roots hold the first of these objects.
    pub(crate) fn held_by_roots(self, held_by_roots: &'a NodeSet) -> Self {
        Self { held_by_roots: Some(held_by_roots), ..self }
    }

    #[inline]
    pub(crate) fn contains(&self, edge: u32, from: u32, to: u32) -> bool {
        let kind = self.snapshot.edge_kind(edge);
        if kind == EdgeKind::WEAK || from == to {
            return false;
        }
        // Key and table hold a value together. The key's edge says more, so the table's edge does
        // not count.
        if kind == EdgeKind::INTERNAL {
            let pair = self.weak_maps.get(self.snapshot.edge_name_number(edge));
            if pair.is_some_and(|pair| pair.table_id == self.snapshot.id(from)) {
                return false;
            }
        }
        if from == self.snapshot.root {
            return true;
        }
        // References from outside the page do not count: the page owns its objects.
        let is_from_outside = self.page_objects.contains(to) && !self.page_objects.contains(from);
        kind != EdgeKind::SHORTCUT
            && (!is_from_outside
                || self.held_by_roots.is_some_and(|held| held.contains(to))
                    && self.snapshot.kind(from) == NodeKind::SYNTHETIC)
    }
}

/// Returns the rule for a snapshot without a [`crate::devtools::Heap`].
pub(crate) fn keeps_alive(snapshot: &Snapshot) -> impl Fn(u32, u32, u32) -> bool + '_ {
    let weak_maps = WeakMapEdges::of(&snapshot.strings);
    let page_objects = page_objects(snapshot);
    move |edge, from, to| EssentialEdges::new(snapshot, &weak_maps, &page_objects).contains(edge, from, to)
}
