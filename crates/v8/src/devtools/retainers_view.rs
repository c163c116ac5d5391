//! The retainers view: who refers to an object, the nearest to the root first, some of them ignored
//! on request.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::EdgeKind;
use crate::devtools::Heap;
use crate::devtools::distances::{NO_DISTANCE, distances};
use crate::devtools::retainer_order::{Held, RetainerOrder};
use crate::objects::{NodeNumber, Objects, Page};

/// Distances from here on belong to what only ignored objects hold.
pub(crate) const BASE_UNREACHABLE_DISTANCE: i32 = 200_000_000;

/// Retainers with some nodes ignored.
#[derive(Debug)]
pub struct RetainersView<'a, H: ?Sized = Heap> {
    heap: &'a H,
    /// Distances without the ignored nodes; none are ignored without.
    distances: Option<Vec<i32>>,
    ignored_edges: FxHashSet<u32>,
}

impl<'a, H: Objects + ?Sized> RetainersView<'a, H> {
    /// The view of a heap in which nothing is ignored.
    pub fn whole(heap: &'a H) -> Self {
        Self { heap, distances: None, ignored_edges: FxHashSet::default() }
    }

    /// The distance of a node in this view.
    pub fn distance(&self, node: u32) -> i32 {
        self.distance_in_view(node, self.heap.devtools_distance(node))
    }

    fn distance_in_view(&self, node: u32, plain: i32) -> i32 {
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
        self.distance(self.heap.source(edge))
    }

    /// The edges into `node`: not those from the root, nor the weak ones; by distance, then by name
    /// (`__proto__` last).
    pub fn edges_into(&self, node: u32) -> Vec<u32> {
        self.some_edges_into(node, 0, usize::MAX).0
    }

    /// `count` of these edges from the one at `first` on, and how many there are.
    pub(crate) fn some_edges_into(&self, node: u32, first: usize, count: usize) -> (Vec<u32>, usize) {
        let page = Page { first, count };
        if self.distances.is_none()
            && let Some(known) = self.heap.retainers_in_order(node, page)
        {
            return known;
        }
        let order = self.order_of(&self.heap.edges_into(node, usize::MAX));
        (order.rows(page.range(order.count())), order.count())
    }

    /// Those of all edges into a node that are shown, to be put in order.
    pub(crate) fn order_of(&self, all: &[u32]) -> RetainerOrder<'a, H> {
        let heap = self.heap;
        let root = heap.root();
        let holders = heap.holders(all);
        let sources: Vec<u32> = holders.iter().map(|&(source, _)| source).collect();
        let distances = heap.numbers_of(NodeNumber::Distance, &sources);
        let held = all
            .iter()
            .zip(holders)
            .zip(distances)
            .filter(|&((_, (source, kind)), _)| {
                !matches!(kind, EdgeKind::WEAK | EdgeKind::INVISIBLE) && source != root
            })
            .map(|((&edge, (source, kind)), distance)| {
                let distance = if self.ignored_edges.contains(&edge) {
                    BASE_UNREACHABLE_DISTANCE
                } else {
                    self.distance_in_view(source, NodeNumber::to_distance(distance))
                };
                Held { edge, kind, distance }
            });
        RetainerOrder::of(heap, held.collect())
    }
}

impl<'a> RetainersView<'a> {
    /// The view of a heap as if the `ignored` nodes did not exist.
    pub fn new(heap: &'a Heap, ignored: &[u32]) -> Self {
        let mut view = Self::whole(heap);
        if !ignored.is_empty() {
            let ignored: FxHashSet<u32> = ignored.iter().copied().collect();
            let found = distances(heap.snapshot(), &heap.weak_maps, |node| ignored.contains(&node));
            view.ignored_edges = view.partners_of_unreachable(&found);
            view.distances = Some(found);
        }
        view
    }

    /// An entry of a WeakMap is lost with its key or its table; the edge from the other does not
    /// hold it.
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
