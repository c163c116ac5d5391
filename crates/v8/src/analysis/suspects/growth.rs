//! Gains and losses of each owner between two snapshots.

use rustc_hash::{FxHashMap, FxHashSet};

use super::super::classes::{Classes, Names};
use super::super::heap_view::{EdgeName, HeapView};
use super::super::matching::{Matching, NOT_THERE};
use super::super::storage::{is_of_the_engine, is_storage};
use super::own_bytes::OwnBytes;
use super::ownership::{NONE, Ownership, is_collection};
use crate::NodeKind;

/// Owner, and the field by which it holds what it gained; [`NONE`] for the content of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Holding {
    /// Node of the owner in the later snapshot.
    pub(super) owner: u32,
    pub(super) field: u32,
    /// Class of the items if the owner is only their common ancestor; [`NONE`] otherwise.
    pub(super) item_class: u32,
}

impl Holding {
    pub(super) fn new(owner: u32, field: u32) -> Self {
        Self { owner, field, item_class: NONE }
    }
}

/// Gains minus losses.
#[derive(Debug, Clone, Default)]
pub(super) struct Growth {
    pub(super) bytes: i64,
    /// Number of items: objects that the owner refers to directly or through its storage.
    pub(super) item_count: i64,
    /// Growth of all nodes by class, including nodes deep below items, so that all links of a chain
    /// count.
    pub(super) by_class: FxHashMap<u32, ClassGrowth>,
    /// Gained items, at most [`ITEMS_KEPT`].
    pub(super) new_items: Vec<u32>,
    /// Other old nodes that refer to items, with the bytes that they hold as well.
    pub(super) other_holders: FxHashMap<u32, i64>,
}

impl Growth {
    /// Adds the growth of another owner of the same kind.
    pub(super) fn add(&mut self, other: Self) {
        self.bytes += other.bytes;
        self.item_count += other.item_count;
        for (class, more) in other.by_class {
            let sum = self.by_class.entry(class).or_default();
            sum.count += more.count;
            sum.item_count += more.item_count;
            sum.bytes += more.bytes;
            if sum.example.is_none() || more.is_example_item && !sum.is_example_item {
                sum.example = more.example;
                sum.is_example_item = more.is_example_item;
            }
        }
        for (holder, bytes) in other.other_holders {
            *self.other_holders.entry(holder).or_default() += bytes;
        }
        let room = ITEMS_KEPT.saturating_sub(self.new_items.len());
        self.new_items.extend(other.new_items.into_iter().take(room));
    }

    /// Adds a node that came.
    fn add_node(&mut self, node: u32, class: u32, bytes: i64, is_item: bool) {
        self.bytes += bytes;
        let of_class = self.by_class.entry(class).or_default();
        of_class.count += 1;
        of_class.bytes += bytes;
        if is_item {
            self.item_count += 1;
            of_class.item_count += 1;
            if self.new_items.len() < ITEMS_KEPT {
                self.new_items.push(node);
            }
        }
        if of_class.example.is_none() || is_item && !of_class.is_example_item {
            of_class.example = Some(node);
            of_class.is_example_item = is_item;
        }
    }

    /// Subtracts a node that went.
    fn remove_node(&mut self, class: u32, bytes: i64, is_item: bool) {
        self.bytes -= bytes;
        let of_class = self.by_class.entry(class).or_default();
        of_class.count -= 1;
        of_class.bytes -= bytes;
        if is_item {
            self.item_count -= 1;
            of_class.item_count -= 1;
        }
    }

    /// Returns the nodes that hold at least half of what the owner gained, the largest part first.
    pub(super) fn also_held_by(&self) -> Vec<u32> {
        let mut holders: Vec<(i64, u32)> = self
            .other_holders
            .iter()
            .filter(|&(_, &bytes)| bytes * 2 >= self.bytes)
            .map(|(&node, &bytes)| (-bytes, node))
            .collect();
        holders.sort_unstable();
        holders.into_iter().map(|(_, node)| node).collect()
    }
}

/// Part of a class in a growth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClassGrowth {
    pub(super) count: i64,
    pub(super) item_count: i64,
    pub(super) bytes: i64,
    /// New node of the class, an item if one exists.
    pub(super) example: Option<u32>,
    pub(super) is_example_item: bool,
}

/// Largest number of items stored per owner, to find out what else holds them.
const ITEMS_KEPT: usize = 500;

/// Computes the growth of every owner between two snapshots. `late` are nodes of the later one that
/// count as owners although the earlier one lacks them. `ownership` belongs to the later snapshot.
pub(super) fn growth_between<H: HeapView>(
    before: &H,
    after: &H,
    matching: &Matching,
    late: &FxHashSet<u32>,
    ownership: &Ownership,
    names: &mut Names,
) -> FxHashMap<Holding, Growth> {
    let mut all: FxHashMap<Holding, Growth> = FxHashMap::default();

    let was_own = OwnBytes::of(before, &matching.later, |node| counts(before, node));
    let is_own = OwnBytes::of(after, &matching.earlier, |node| counts(after, node));
    let mut classes = Classes::of(after);
    for &node in after.dominators().order() {
        let index = node as usize;
        if matching.earlier[index] != NOT_THERE {
            // The node itself may have become larger: a store that was enlarged in place.
            let earlier = matching.earlier[index];
            let (was, is) = (was_own.bytes(earlier), is_own.bytes(node));
            let is_inner = was_own.is_inner(earlier) || is_own.is_inner(node);
            if was != is && (is_inner || counts(after, node)) {
                let holding = Holding::new(ownership.owner[index], NONE);
                all.entry(holding).or_default().bytes += is as i64 - was as i64;
            }
            continue;
        }
        if !counts(after, node) {
            continue;
        }
        if late.contains(&node) {
            let holding = Holding::new(node, NONE);
            all.entry(holding).or_default().bytes += is_own.bytes(node) as i64;
        }
        if ownership.item[index] == NONE {
            continue;
        }
        let item = ownership.item[index];
        let class = classes.class(after, names, node);
        let holding = holding_of(after, ownership, &mut classes, names, item);
        let growth = all.entry(holding).or_default();
        let bytes = is_own.bytes(node) as i64;
        growth.add_node(node, class, bytes, item == node && !is_storage(after, node));
    }

    let mut classes = Classes::of(before);
    let ownership = Ownership::of(before, &matching.later, &FxHashSet::default(), &mut classes, names);
    for &node in before.dominators().order() {
        let index = node as usize;
        if matching.later[index] != NOT_THERE || !counts(before, node) || ownership.item[index] == NONE {
            continue;
        }
        let item = ownership.item[index];
        let class = classes.class(before, names, node);
        let was = holding_of(before, &ownership, &mut classes, names, item);
        // Owners are nodes that both snapshots have, except for the root, which may be unmatched.
        // It stands for the other root.
        let owner = match matching.later[was.owner as usize] {
            NOT_THERE => after.dominators().root(),
            owner => owner,
        };
        let growth = all.entry(Holding { owner, ..was }).or_default();
        growth.remove_node(class, was_own.bytes(node) as i64, item == node && !is_storage(before, node));
    }
    all
}

/// Whether a node's growth counts. Compiled code and hidden classes come and go with the called
/// functions and are not leaks.
fn counts(heap: &impl HeapView, node: u32) -> bool {
    match heap.kind(node) {
        NodeKind::CODE | NodeKind::OBJECT_SHAPE | NodeKind::SYNTHETIC => false,
        NodeKind::HIDDEN => {
            let name = heap.name(node);
            is_asked_for(&name) || !name.starts_with("system") && !name.starts_with('(')
        }
        NodeKind::NATIVE => {
            let name = heap.name(node);
            is_asked_for(&name) || !name.starts_with("Node / ") && !is_of_the_engine(heap, node)
        }
        NodeKind::STRING => !is_of_compiled_code(heap, node),
        _ => true,
    }
}

/// Whether a text belongs to compiled code: a constant, a name. A script's own text does not count
/// as such, because a program that makes ever more scripts leaks their texts.
fn is_of_compiled_code(heap: &impl HeapView, text: u32) -> bool {
    let code = heap.dominators().idom(text);
    let mut edges = heap.graph().edges(code).filter(|&edge| heap.graph().target(edge) == text);
    heap.kind(code) == NodeKind::CODE
        && edges.all(|edge| match heap.edge_name(edge) {
            EdgeName::Name(name) => name != "source",
            EdgeName::Index(_) => true,
        })
}

/// Whether the engine makes one of these for each call of the program: `then`, and the `register`
/// of a FinalizationRegistry.
fn is_asked_for(name: &str) -> bool {
    matches!(name, "system / PromiseReaction" | "system / WeakCell")
}

fn holding_of<H: HeapView>(
    heap: &H,
    ownership: &Ownership,
    classes: &mut Classes,
    names: &mut Names,
    item: u32,
) -> Holding {
    let owner = ownership.owner[item as usize];
    let field = ownership.field(item);
    let is_direct = field != NONE || is_collection(heap, owner);
    let item_class = if is_direct { NONE } else { classes.class(heap, names, item) };
    Holding { owner, field, item_class }
}
