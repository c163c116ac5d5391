//! Owners that appeared after the first snapshot was taken.
//!
//! A freshly started server has no timer list, and the first request creates a cache. Their growth
//! would be added up at an older node, such as a root or a module's variables. From each large new
//! item, the walk follows the heaviest child down the dominator tree. It stops when no child has
//! most of the bytes. If that node is an object with many children, it counts as an owner.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::classes::{Classes, Names};
use super::super::heap_view::HeapView;
use super::super::matching::NOT_THERE;
use super::super::storage::is_storage;
use super::ownership::{NONE, Ownership, can_own, has_field_name};
use crate::{EdgeKind, NodeKind};

/// Least bytes of an item that is examined.
const LEAST_BYTES: u64 = 4096;
/// Least share of a holding's growth that one item must have, in percent.
const LEAST_SHARE_PERCENT: u64 = 50;
/// Least share of a node's retained bytes that a child must have for the walk to continue, in
/// percent.
const GO_ON_PERCENT: u64 = 70;
/// Least number of things that an owner collects.
const LEAST_CHILDREN: u32 = 5;
/// Number of times that a class holds the next object by the same field to form a chain. A chain
/// counts as one thing.
const CHAIN_LINKS: u32 = 3;

/// Earlier snapshot, and for each node of the later one its node there.
pub(super) struct Before<'a, H> {
    pub(super) heap: &'a H,
    pub(super) of_later: &'a [u32],
}

impl<H: HeapView> Before<'_, H> {
    /// Whether a field of an owner held another object before. That object still lives elsewhere,
    /// or the new one would be its successor. Then the field owns the growth, rather than one
    /// object.
    fn had(&self, owner: u32, field: &str) -> bool {
        let owner = self.of_later[owner as usize];
        if owner == NOT_THERE {
            return false;
        }
        let mut edges = self.heap.graph().edges(owner);
        edges.any(|edge| {
            has_field_name(self.heap, edge)
                && can_own(self.heap, self.heap.graph().target(edge))
                && self.heap.string(self.heap.edge_name_index(edge)) == field
        })
    }
}

/// Returns the new nodes of `heap` that count as owners.
pub(super) fn late_owners<H: HeapView>(
    heap: &H,
    before: &Before<'_, H>,
    ownership: &Ownership,
    classes: &mut Classes,
    names: &mut Names,
) -> FxHashSet<u32> {
    let other = before.of_later;
    let dominators = heap.dominators();
    let node_count = heap.graph().node_count();
    let mut heavy_child = vec![NONE; node_count as usize];
    let mut child_count = vec![0u32; node_count as usize];
    let mut growth_of: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    for node in 0..node_count {
        if other[node as usize] != NOT_THERE || node == dominators.root() {
            continue;
        }
        let idom = dominators.idom(node) as usize;
        // Things in a store belong to its collection.
        let collection =
            if is_storage(heap, idom as u32) { dominators.idom(idom as u32) as usize } else { idom };
        child_count[collection] += 1;
        let heaviest = &mut heavy_child[idom];
        if *heaviest == NONE || heap.retained_bytes(node) > heap.retained_bytes(*heaviest) {
            *heaviest = node;
        }
        if ownership.item[node as usize] == node {
            let holding = (ownership.owner[node as usize], ownership.field(node));
            *growth_of.entry(holding).or_default() += heap.retained_bytes(node);
        }
    }

    let mut found = FxHashSet::default();
    let language = heap.meta().language();
    for item in 0..node_count {
        let is_new = other[item as usize] == NOT_THERE;
        if is_new
            && !language.has_kinds_of_v8()
            && heap.kind(item) == NodeKind::OBJECT
            && language.is_one_thing(&heap.name(item))
        {
            found.insert(item);
            continue;
        }
        let bytes = heap.retained_bytes(item);
        if ownership.item[item as usize] != item || bytes < LEAST_BYTES {
            continue;
        }
        let owner = ownership.owner[item as usize];
        let of_holding = growth_of.get(&(owner, ownership.field(item))).copied().unwrap_or(0);
        if heap.kind(owner) != NodeKind::SYNTHETIC && bytes < of_holding / 100 * LEAST_SHARE_PERCENT {
            continue;
        }
        let field = ownership.field(item);
        if field != NONE && before.had(owner, names.name(field)) {
            continue;
        }
        if let Some(late) = descend(heap, item, &heavy_child, &child_count, classes, names) {
            found.insert(late);
        }
    }
    found
}

/// Whether an edge leads from a function to its context. Functions hold contexts everywhere, which
/// does not make a chain.
fn is_context_of(heap: &impl HeapView, function: u32, edge: u32) -> bool {
    heap.kind(function) == NodeKind::CLOSURE
        && heap.edge_kind(edge) == EdgeKind::INTERNAL
        && heap.string(heap.edge_name_index(edge)) == "context"
}

fn descend<H: HeapView>(
    heap: &H,
    item: u32,
    heavy_child: &[u32],
    child_count: &[u32],
    classes: &mut Classes,
    names: &mut Names,
) -> Option<u32> {
    let mut met: FxHashMap<(u32, EdgeKind, u32), u32> = FxHashMap::default();
    let mut at = item;
    let mut last_owner = None;
    loop {
        if can_own(heap, at) {
            last_owner = Some(at);
        }
        let child = heavy_child[at as usize];
        let goes_on = child != NONE
            && u128::from(heap.retained_bytes(child)) * 100
                >= u128::from(heap.retained_bytes(at)) * u128::from(GO_ON_PERCENT);
        if !goes_on {
            break;
        }
        let edge = heap.graph().edges(at).find(|&edge| heap.graph().target(edge) == child);
        if let Some(edge) = edge.filter(|&edge| !is_storage(heap, at) && !is_context_of(heap, at, edge)) {
            let link = (classes.class(heap, names, at), heap.edge_kind(edge), heap.edge_name_index(edge));
            let times = met.entry(link).or_default();
            *times += 1;
            if *times >= CHAIN_LINKS {
                return None;
            }
        }
        at = child;
    }
    last_owner.filter(|&owner| child_count[owner as usize] >= LEAST_CHILDREN)
}
