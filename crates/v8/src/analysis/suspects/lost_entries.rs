//! Contents of Maps and Sets in files without references from them to their entries, such as Bun's.
//! The entries are unreachable, and only the size of a table shows the owner.
//!
//! ```text
//!  variable sessions -> Map -> (table, 41,024 B)        Session  Session  Session  …
//!                              grew, no references      grew, unreachable
//! ```

use rustc_hash::FxHashMap;

use heapr_graph::reachable;

use super::super::heap_view::HeapView;
use super::super::matching::{Matching, NOT_THERE};
use super::growth::{Growth, Holding};
use crate::{EdgeKind, NodeKind};

/// Least bytes of an entry: one reference.
const LEAST_BYTES_OF_ENTRY: u64 = 8;

/// Unreachable entries of a file without references to entries, and their likely holder.
#[derive(Debug)]
pub(super) struct LostEntries {
    /// Classes of the unreachable items, in the numbering that all snapshots share.
    classes: Vec<u32>,
    /// Map or Set whose table grew most among those with enough room for the items.
    pub(super) holder: Option<u32>,
}

impl LostEntries {
    /// Looks for unreachable entries in the last snapshot. Returns `None` if Maps and Sets refer to
    /// their entries, or if no gained item is unreachable.
    pub(super) fn of<H: HeapView>(
        first: &H,
        last: &H,
        matching: &Matching,
        growth: &FxHashMap<Holding, Growth>,
    ) -> Option<Self> {
        let root = last.dominators().root();
        let at_root = |holding: &Holding| holding.owner == root;
        if !growth.keys().any(at_root) {
            return None;
        }
        let tables = Table::all(last)?;
        let reached = reachable(last.graph(), [root], |edge, _, _| last.edge_kind(edge) != EdgeKind::WEAK);
        let mut classes = Vec::new();
        let (mut most, mut has_objects) = (0, false);
        for (holding, growth) in
            growth.iter().filter(|(holding, growth)| at_root(holding) && growth.bytes > 0)
        {
            let lost = growth.new_items.iter().filter(|&&item| !reached[item as usize]).count();
            if lost * 2 > growth.new_items.len() {
                classes.push(holding.item_class);
                most = most.max(growth.item_count.max(0) as u64);
                has_objects |= growth.new_items.iter().any(|&item| !last.kind(item).is_string());
            }
        }
        if classes.is_empty() {
            return None;
        }
        let grown = |table: &Table| match matching.earlier[table.collection as usize] {
            NOT_THERE => table.bytes,
            before => table.bytes.saturating_sub(Table::of(first, before).bytes),
        };
        let mut rooms: Vec<(u64, u64, u32)> = tables
            .iter()
            .filter(|table| table.bytes >= most.saturating_mul(LEAST_BYTES_OF_ENTRY))
            .map(|table| (grown(table), table.bytes, table.collection))
            .collect();
        rooms.sort_unstable();
        let holder = match rooms[..] {
            [.., (grown, _, collection)] if grown > 0 => Some(collection),
            // A table that had spare room need not have grown.
            [(_, _, collection)] if has_objects => Some(collection),
            _ => None,
        };
        // Pieces of concatenated texts are unreachable too, without growth of a table.
        if holder.is_none() && !has_objects {
            return None;
        }
        Some(Self { classes, holder })
    }

    /// Moves the growth of unreachable items from the root to the holder.
    pub(super) fn move_to_holder(&self, root: u32, growth: &mut FxHashMap<Holding, Growth>) {
        let Some(holder) = self.holder else { return };
        for &item_class in &self.classes {
            let at_root = growth.keys().find(|it| it.owner == root && it.item_class == item_class).copied();
            if let Some(moved) = at_root.and_then(|holding| growth.remove(&holding)) {
                growth.entry(Holding::new(holder, super::ownership::NONE)).or_default().add(moved);
            }
        }
    }
}

/// Map or Set with the bytes of its table.
struct Table {
    collection: u32,
    bytes: u64,
}

impl Table {
    fn of(heap: &impl HeapView, collection: u32) -> Self {
        let stores = heap.graph().edges(collection).map(|edge| heap.graph().target(edge));
        let own = stores.filter(|&store| is_own_store(heap, collection, store));
        let bytes = own.map(|store| heap.self_bytes(store)).sum::<u64>();
        Self { collection, bytes: bytes.saturating_add(heap.self_bytes(collection)) }
    }

    /// Returns all Maps and Sets of a heap, or `None` if the heap has no such object or one of them
    /// refers to an entry.
    fn all(heap: &impl HeapView) -> Option<Vec<Self>> {
        let mut all = Vec::new();
        for node in 0..heap.graph().node_count() {
            let is_collection =
                heap.kind(node) == NodeKind::OBJECT && matches!(&*heap.name(node), "Map" | "Set");
            if !is_collection || is_prototype(heap, node) {
                continue;
            }
            let mut stores = heap.graph().edges(node).map(|edge| heap.graph().target(edge));
            if stores.any(|store| is_own_store(heap, node, store) && has_entries(heap, store)) {
                return None;
            }
            all.push(Self::of(heap, node));
        }
        (!all.is_empty()).then_some(all)
    }
}

/// Whether a node has the methods of the class: the prototype of all Maps, which holds no entries.
fn is_prototype(heap: &impl HeapView, node: u32) -> bool {
    heap.graph().edges(node).any(|edge| {
        heap.edge_kind(edge) == EdgeKind::PROPERTY
            && heap.kind(heap.graph().target(edge)) == NodeKind::CLOSURE
    })
}

/// Whether a node is the store of that collection alone, rather than a class or a text.
fn is_own_store(heap: &impl HeapView, collection: u32, store: u32) -> bool {
    heap.dominators().idom(store) == collection && heap.kind(store) != NodeKind::OBJECT_SHAPE
}

/// Whether a store refers to objects that a program made.
fn has_entries(heap: &impl HeapView, store: u32) -> bool {
    let mut targets = heap.graph().edges(store).map(|edge| heap.graph().target(edge));
    targets.any(|target| matches!(heap.kind(target), NodeKind::OBJECT | NodeKind::CLOSURE | NodeKind::STRING))
}
