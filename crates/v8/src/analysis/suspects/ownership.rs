//! Owners of the nodes that only one of two snapshots has.
//!
//! ```text
//!  MemoryStore (both)            an owner is the nearest node above, in the dominator tree, that both snapshots have
//!    └ sessions: Object (both)   and that is an object of a program: not the store of a collection, code or a string.
//!        ├ (string)     new      items are the topmost new nodes below it that are not storage.
//!        ├ (string)     new
//!        └ (array)      new      storage grows with the collection and is not an item
//! ```

use rustc_hash::FxHashSet;

use super::super::classes::{Classes, Names};
use super::super::heap_view::HeapView;
use super::super::matching::NOT_THERE;
use super::super::modules::is_exports;
use super::super::storage::{is_dictionary, is_of_the_engine, is_storage};
use crate::{EdgeKind, NodeKind};

pub(super) const NONE: u32 = u32::MAX;

/// Owner of each node of a snapshot. For nodes that the other snapshot lacks, also the item that
/// they belong to.
#[derive(Debug)]
pub(super) struct Ownership {
    /// Nearest node at or above that both snapshots have and that can own.
    pub(super) owner: Vec<u32>,
    /// Topmost unshared node at or above that the owner holds; `NONE` for nodes that both snapshots
    /// have.
    pub(super) item: Vec<u32>,
    /// Node below the owner on the path down the dominator tree to each node.
    branch: Vec<u32>,
    /// Number of the field by which an owner refers to a branch.
    field_of_branch: Vec<u32>,
}

impl Ownership {
    /// Assigns owners to all nodes. `other[node]` is the node in the other snapshot or
    /// [`NOT_THERE`]. `late` are nodes that count as owners although the other snapshot lacks them.
    pub(super) fn of<H: HeapView>(
        heap: &H,
        other: &[u32],
        late: &FxHashSet<u32>,
        classes: &mut Classes,
        names: &mut Names,
    ) -> Self {
        let graph = heap.graph();
        let dominators = heap.dominators();
        let node_count = graph.node_count() as usize;
        let mut owner = vec![NONE; node_count];
        let mut item = vec![NONE; node_count];
        let mut branch = vec![NONE; node_count];
        let root = dominators.root();
        for &node in dominators.order() {
            let idom = dominators.idom(node);
            branch[node as usize] = if owner[idom as usize] == idom { node } else { branch[idom as usize] };
            let is_shared = other[node as usize] != NOT_THERE || node == root || late.contains(&node);
            if is_shared {
                owner[node as usize] =
                    if node == root || can_own(heap, node) { node } else { owner[idom as usize] };
                continue;
            }
            owner[node as usize] = owner[idom as usize];
            let above = item[idom as usize];
            let is_top = above == NONE || (above == idom && is_storage(heap, idom));
            item[node as usize] = if is_top { node } else { above };
        }

        let mut field_of_branch = vec![NONE; node_count];
        for node in 0..graph.node_count() {
            if owner[node as usize] != node || is_collection(heap, node) {
                continue;
            }
            for edge in graph.edges(node) {
                let target = graph.target(edge);
                let is_branch = branch[target as usize] == target && dominators.idom(target) == node;
                if is_branch && field_of_branch[target as usize] == NONE && has_field_name(heap, edge) {
                    field_of_branch[target as usize] =
                        classes.string(heap, names, heap.edge_name_index(edge));
                }
            }
        }
        Self { owner, item, branch, field_of_branch }
    }

    /// Returns the field by which the owner above `node` holds the branch that leads to it. `NONE`
    /// for the content of a collection, and if the owner does not refer to the branch itself.
    pub(super) fn field(&self, node: u32) -> u32 {
        match self.branch[node as usize] {
            NONE => NONE,
            branch => self.field_of_branch[branch as usize],
        }
    }
}

/// Whether an edge is a field that a programmer gave a name.
pub(super) fn has_field_name(heap: &impl HeapView, edge: u32) -> bool {
    matches!(heap.edge_kind(edge), EdgeKind::PROPERTY | EdgeKind::CONTEXT | EdgeKind::INTERNAL)
        && !heap.string_bytes(heap.edge_name_index(edge)).is_empty()
}

pub(super) fn can_own(heap: &impl HeapView, node: u32) -> bool {
    match heap.kind(node) {
        NodeKind::NATIVE => !is_of_the_engine(heap, node),
        kind => matches!(
            kind,
            NodeKind::OBJECT
                | NodeKind::CLOSURE
                | NodeKind::SYNTHETIC
                | NodeKind::REGEXP
                | NodeKind::WASM_OBJECT
        ),
    }
}

/// Whether a node is a root that holds things of all kinds, rather than an object of the program.
pub(super) fn is_row(heap: &impl HeapView, node: u32) -> bool {
    match heap.kind(node) {
        NodeKind::SYNTHETIC => true,
        NodeKind::NATIVE => heap.meta().dialect.is_some() && heap.name(node).starts_with('('),
        _ => false,
    }
}

/// Whether the node holds its contents under keys or positions, rather than in fields; or as one
/// thing, whatever the field.
pub(in crate::analysis) fn is_collection(heap: &impl HeapView, node: u32) -> bool {
    if heap.kind(node) != NodeKind::OBJECT {
        return false;
    }
    if let Some(dialect) = &heap.meta().dialect {
        let name = heap.name(node);
        return dialect.is_collection(&name) || dialect.language.is_one_thing(&name);
    }
    match &*heap.name(node) {
        "Array" | "Map" | "Set" | "WeakMap" | "WeakSet" | "Promise" => true,
        _ => is_dictionary(heap, node) && !is_exports(heap, node),
    }
}
