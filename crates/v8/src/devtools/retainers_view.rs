//! Retainers view: referrers of an object, nearest to the root first, with some nodes ignored on
//! request.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::EdgeKind;
use crate::devtools::Heap;
use crate::devtools::distances::{NO_DISTANCE, distances};
use crate::devtools::retainer_order::{Held, RetainerOrder};
use crate::objects::{NodeNumber, Objects, Page};

/// Base of the distances of nodes that only ignored nodes hold.
pub(crate) const BASE_UNREACHABLE_DISTANCE: i32 = 200_000_000;

/// Retainers with some nodes ignored.
#[derive(Debug)]
pub struct RetainersView<'a, H: ?Sized = Heap> {
    heap: &'a H,
    /// Distances without the ignored nodes; `None` if no nodes are ignored.
    distances: Option<Vec<i32>>,
    ignored_edges: FxHashSet<u32>,
}

impl<'a, H: Objects + ?Sized> RetainersView<'a, H> {
    /// Returns the view of a heap without ignored nodes.
    pub fn whole(heap: &'a H) -> Self {
        Self { heap, distances: None, ignored_edges: FxHashSet::default() }
    }

    /// Distance of a node in this view.
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

    /// Distance of an edge's source, by which the view sorts.
    pub fn edge_distance(&self, edge: u32) -> i32 {
        if self.ignored_edges.contains(&edge) {
            return BASE_UNREACHABLE_DISTANCE;
        }
        self.distance(self.heap.source(edge))
    }

    /// Returns the edges into `node`, except those from the root and the weak ones. They are
    /// ordered by distance, then by name (`__proto__` last).
    pub fn edges_into(&self, node: u32) -> Vec<u32> {
        self.some_edges_into(node, 0, usize::MAX).0
    }

    /// Returns `count` of the edges of [`Self::edges_into`] from index `first` on, and the number
    /// of all.
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

    /// Selects the edges into a node that are shown, for sorting.
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
    /// Returns the view of a heap as if the `ignored` nodes did not exist.
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

    /// Returns the edges of WeakMap entries whose key or table is unreachable: they do not hold
    /// their target.
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
