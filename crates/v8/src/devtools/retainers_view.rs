//! The retainers view: who refers to an object, the nearest to the root first, some of them ignored on request.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::EdgeKind;
use crate::devtools::Heap;
use crate::devtools::distances::{NO_DISTANCE, distances};
use crate::format::compare_utf16;

/// Distances from here on belong to what only ignored objects hold.
pub const BASE_UNREACHABLE_DISTANCE: i32 = 200_000_000;

/// Retainers with some nodes ignored.
#[derive(Debug)]
pub struct RetainersView<'a> {
    heap: &'a Heap,
    /// Distances without the ignored nodes; none are ignored without.
    distances: Option<Vec<i32>>,
    ignored_edges: FxHashSet<u32>,
}

impl<'a> RetainersView<'a> {
    /// The view of a heap as if the `ignored` nodes did not exist.
    pub fn new(heap: &'a Heap, ignored: &[u32]) -> Self {
        let mut view = Self { heap, distances: None, ignored_edges: FxHashSet::default() };
        if !ignored.is_empty() {
            let ignored: FxHashSet<u32> = ignored.iter().copied().collect();
            let found = distances(heap.snapshot(), &heap.weak_maps, |node| ignored.contains(&node));
            view.ignored_edges = view.partners_of_unreachable(&found);
            view.distances = Some(found);
        }
        view
    }

    /// The distance of a node in this view.
    pub fn distance(&self, node: u32) -> i32 {
        let plain = self.heap.distances()[node as usize];
        match &self.distances {
            None if plain == NO_DISTANCE => BASE_UNREACHABLE_DISTANCE,
            None => plain,
            Some(distances) => match distances[node as usize] {
                NO_DISTANCE => plain.max(0).saturating_add(BASE_UNREACHABLE_DISTANCE),
                distance => distance,
            },
        }
    }

    /// The distance of the node that an edge comes from, as the view sorts by it.
    pub fn edge_distance(&self, edge: u32) -> i32 {
        if self.ignored_edges.contains(&edge) {
            return BASE_UNREACHABLE_DISTANCE;
        }
        self.distance(self.heap.snapshot().graph().source(edge))
    }

    /// The edges into `node`: not those from the root, nor the weak ones; by distance, then by name (`__proto__` last).
    pub fn edges_into(&self, node: u32) -> Vec<u32> {
        let snapshot = self.heap.snapshot();
        let mut edges: Vec<u32> = self
            .heap
            .retainers()
            .edges_into(node)
            .iter()
            .copied()
            .filter(|&edge| !matches!(snapshot.edge_kind(edge), EdgeKind::WEAK | EdgeKind::INVISIBLE))
            .filter(|&edge| snapshot.graph().source(edge) != snapshot.root())
            .collect();
        edges.sort_by_cached_key(|&edge| {
            let kind = snapshot.edge_kind(edge);
            let name = snapshot.edge_name(edge).into_owned();
            (self.edge_distance(edge), name == "__proto__", !kind.has_string_name(), Name(name))
        });
        edges
    }

    /// An entry of a WeakMap is lost with its key or its table; the edge from the other does not hold it.
    fn partners_of_unreachable(&self, distances: &[i32]) -> FxHashSet<u32> {
        let snapshot = self.heap.snapshot();
        let mut lost: FxHashMap<u32, FxHashSet<u32>> = FxHashMap::default();
        let pair_of = |edge: u32| {
            let name =
                (snapshot.edge_kind(edge) == EdgeKind::INTERNAL).then(|| snapshot.edge_name_number(edge))?;
            Some(self.heap.weak_maps.get(name)?.pair)
        };
        for node in (0..snapshot.node_count()).filter(|&node| distances[node as usize] == NO_DISTANCE) {
            for edge in snapshot.graph().edges(node) {
                if let Some(pair) = pair_of(edge) {
                    lost.entry(snapshot.graph().target(edge)).or_default().insert(pair);
                }
            }
        }
        let mut edges = FxHashSet::default();
        for (&target, pairs) in &lost {
            for &edge in self.heap.retainers().edges_into(target) {
                if pair_of(edge).is_some_and(|pair| pairs.contains(&pair)) {
                    edges.insert(edge);
                }
            }
        }
        edges
    }
}

/// Names in the order of JavaScript.
#[derive(PartialEq, Eq)]
struct Name(String);

impl Ord for Name {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        compare_utf16(self.0.as_bytes(), other.0.as_bytes())
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
