//! Collections added up by what holds them: the field of a class, a static, a thread.
//!
//! ```text
//!  Customer.attrs (HashMap)          335,000 collections, a slot in three used
//!  class Shop: CARTS[…] (ArrayList)   all lists that are in one collection
//! ```
//! An empty collection is small, and a million of them are not. Which ones they are is told by
//! their holder, as all of them have one cause.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::collection::{Collection, Slots};
use super::heap_view::HeapView;
use super::naming::Naming;
use super::native_holders::is_row;
use super::storage::is_storage;
use super::suspects::is_collection;
use crate::{EdgeKind, NodeKind};

/// Collections of one class that are held alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectionOwner {
    /// Name of the holder with its field, and the class of the collections.
    pub name: String,
    /// Number of collections.
    pub collection_count: u64,
    /// Number of collections with nothing in them.
    pub empty_count: u64,
    /// Number of slots of all of them.
    pub slot_count: u64,
    /// Number of slots that something is in.
    pub used_count: u64,
    /// Bytes of the other slots.
    pub wasted_bytes: u64,
    /// Bytes of the stores.
    pub store_bytes: u64,
    /// The collection that wastes most.
    pub example: u32,
}

impl CollectionOwner {
    /// Share of the slots that something is in, in percent; `None` without slots.
    #[must_use]
    pub fn fill_percent(&self) -> Option<u64> {
        let slots = Slots { count: self.slot_count, used: self.used_count, slot_bytes: 0 };
        (self.slot_count > 0).then(|| slots.fill_percent())
    }
}

/// Number of no place.
const NONE: u32 = u32::MAX;
/// Largest number of collections that are told to be in one another.
const DEPTH_MAX: u8 = 3;
/// Number of fields from which on a plain object of JavaScript counts as a collection.
const DICTIONARY_LEAST: u64 = 24;
/// Number of edges up to which each collection's field is looked for among all of its holder's.
const FEW_EDGES: usize = 64;

/// Place where a collection is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// In several ways.
    Several,
    /// By a root: the number of its name.
    Row(u32),
    /// By a field of objects: kind and name of the holder, and the edge's name, if one edge leads
    /// there.
    Field(NodeKind, u32, Option<u32>),
    /// In a collection, which itself has a place.
    Inside(u32),
}

/// All places, and those that are known of nodes.
struct Places<'a, H> {
    heap: &'a H,
    all: Vec<(Place, u8)>,
    numbers: FxHashMap<Place, u32>,
    of_node: Vec<u32>,
    /// Names of fields by target, of holders with more than [`FEW_EDGES`].
    wide_holders: FxHashMap<u32, FxHashMap<u32, u32>>,
}

/// Returns the `top` owners by the bytes of unused slots. Only collections whose slots are known
/// count.
pub fn collection_owners<H: HeapView>(
    heap: &H,
    naming: &Naming<'_, H>,
    all: &[Collection],
    top: usize,
) -> Vec<CollectionOwner> {
    let mut places = Places {
        heap,
        all: Vec::new(),
        numbers: FxHashMap::default(),
        of_node: vec![NONE; heap.graph().node_count() as usize],
        wide_holders: FxHashMap::default(),
    };
    let mut sums: FxHashMap<(u32, u32), (CollectionOwner, u64)> = FxHashMap::default();
    let is_v8 = heap.meta().dialect.is_none();
    for collection in all {
        let Some(slots) = collection.slots else { continue };
        let is_plain = is_v8 && heap.name(collection.node) == "Object";
        if is_plain && collection.reference_count < DICTIONARY_LEAST {
            continue;
        }
        let place = places.of(collection.node);
        let key = (place, heap.name_index(collection.node));
        let (sum, most) = sums.entry(key).or_insert_with(|| (CollectionOwner::at(collection.node), 0));
        let wasted_bytes = slots.wasted_bytes();
        if wasted_bytes > *most {
            (*most, sum.example) = (wasted_bytes, collection.node);
        }
        sum.collection_count += 1;
        sum.empty_count += u64::from(slots.used == 0 && collection.reference_count == 0);
        sum.slot_count = sum.slot_count.saturating_add(slots.count);
        sum.used_count = sum.used_count.saturating_add(slots.used);
        sum.wasted_bytes = sum.wasted_bytes.saturating_add(wasted_bytes);
        sum.store_bytes = sum.store_bytes.saturating_add(collection.store_bytes);
    }
    let mut found: Vec<(u32, CollectionOwner)> =
        sums.into_iter().map(|((place, _), (sum, _))| (place, sum)).collect();
    found.sort_by_key(|(_, sum)| (Reverse(sum.wasted_bytes), Reverse(sum.collection_count), sum.example));
    found.truncate(top);
    let named = |(place, sum): (u32, CollectionOwner)| {
        let name = match sum.collection_count {
            // Its own name says more.
            1 => naming.call(sum.example).whole(None),
            _ => places.named(naming, place, sum.example),
        };
        CollectionOwner { name, ..sum }
    };
    found.into_iter().map(named).collect()
}

impl CollectionOwner {
    fn at(example: u32) -> Self {
        Self {
            name: String::new(),
            collection_count: 0,
            empty_count: 0,
            slot_count: 0,
            used_count: 0,
            wasted_bytes: 0,
            store_bytes: 0,
            example,
        }
    }
}

impl<H: HeapView> Places<'_, H> {
    fn number(&mut self, place: Place) -> u32 {
        let depth = match place {
            Place::Inside(of) => self.all[of as usize].1 + 1,
            _ => 0,
        };
        if let Place::Inside(of) = place
            && depth > DEPTH_MAX
        {
            return of;
        }
        *self.numbers.entry(place).or_insert_with(|| {
            self.all.push((place, depth));
            self.all.len() as u32 - 1
        })
    }

    /// Number of the place where a node is held. Stores are at the place of what they belong to.
    fn of(&mut self, node: u32) -> u32 {
        let heap = self.heap;
        // Nodes on the way up, and whether each is directly in a collection.
        let mut way: Vec<(u32, bool)> = Vec::new();
        let mut at = node;
        let mut place = loop {
            let known = self.of_node[at as usize];
            if known != NONE {
                break known;
            }
            let holder = heap.dominators().idom(at);
            let is_store = is_storage(heap, holder);
            // The root may be of any kind in a damaged file, and is its own dominator.
            let is_above = holder != heap.root() && (is_store || is_collection(heap, holder));
            if !is_above {
                let held_by = self.held_by(holder, at);
                let own = self.number(held_by);
                self.of_node[at as usize] = own;
                break own;
            }
            way.push((at, !is_store));
            at = holder;
        };
        while let Some((below, is_inside)) = way.pop() {
            if is_inside {
                place = self.number(Place::Inside(place));
            }
            self.of_node[below as usize] = place;
        }
        place
    }

    fn held_by(&mut self, holder: u32, node: u32) -> Place {
        let heap = self.heap;
        if holder == heap.root() || holder == node {
            return Place::Several;
        }
        if is_row(heap, holder) {
            return Place::Row(heap.name_index(holder));
        }
        Place::Field(heap.kind(holder), heap.name_index(holder), self.field_to(holder, node))
    }

    /// Name of the first field of a holder that leads to a node.
    fn field_to(&mut self, holder: u32, node: u32) -> Option<u32> {
        let heap = self.heap;
        let is_named = |edge: &u32| {
            let kind = heap.edge_kind(*edge);
            kind != EdgeKind::WEAK && kind.has_string_name()
        };
        let edges = heap.graph().edges(holder);
        if edges.len() <= FEW_EDGES {
            let edge = edges.filter(is_named).find(|&edge| heap.graph().target(edge) == node);
            return edge.map(|edge| heap.edge_name_index(edge));
        }
        let names = self.wide_holders.entry(holder).or_insert_with(|| {
            let mut names = FxHashMap::default();
            for edge in edges.filter(is_named) {
                names.entry(heap.graph().target(edge)).or_insert_with(|| heap.edge_name_index(edge));
            }
            names
        });
        names.get(&node).copied()
    }

    /// Name of a place, with the class of a collection there.
    fn named(&self, naming: &Naming<'_, H>, place: u32, example: u32) -> String {
        let heap = self.heap;
        let language = heap.meta().language();
        let mut at = place;
        let mut inside = String::new();
        while let (Place::Inside(of), _) = self.all[at as usize] {
            inside.push_str("[…]");
            at = of;
        }
        let holder = match self.all[at as usize].0 {
            Place::Several | Place::Inside(_) => "(several together)".to_owned(),
            Place::Row(name) => heap.string(name).into_owned(),
            Place::Field(NodeKind::CLOSURE, name, field) => {
                let field = field.map(|field| format!(".{}", heap.string(field))).unwrap_or_default();
                format!("function {}{field}", heap.string(name))
            }
            Place::Field(_, name, field) => {
                let name = heap.string(name);
                let joint = if language.begins_names(&name) { ": " } else { "." };
                match field {
                    Some(field) => format!("{name}{joint}{}", heap.string(field)),
                    None => format!("{name} (several ways)"),
                }
            }
        };
        let class = naming.own_name(example);
        format!("{holder}{inside} ({})", language.class_in_name(&class))
    }
}
