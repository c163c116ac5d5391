//! The retainers view: who refers to an object, the nearest to the root first, some of them ignored on request.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::EdgeKind;
use crate::devtools::Heap;
use crate::devtools::distances::{NO_DISTANCE, distances};
use crate::format::compare_utf16;
use crate::view::{EdgeName, NodeNumber, Objects};

/// Distances from here on belong to what only ignored objects hold.
pub const BASE_UNREACHABLE_DISTANCE: i32 = 200_000_000;

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

    /// The edges into `node`: not those from the root, nor the weak ones; by distance, then by name (`__proto__` last).
    pub fn edges_into(&self, node: u32) -> Vec<u32> {
        self.some_edges_into(node, 0, usize::MAX).0
    }

    /// `count` of these edges from the one at `first` on, and how many there are.
    pub fn some_edges_into(&self, node: u32, first: usize, count: usize) -> (Vec<u32>, usize) {
        let heap = self.heap;
        let root = heap.root();
        let all = heap.edges_into(node, usize::MAX);
        let holders = heap.holders(&all);
        let sources: Vec<u32> = holders.iter().map(|&(source, _)| source).collect();
        let distances = heap.numbers_of(NodeNumber::Distance, &sources);
        let mut edges: Vec<(i32, u32, EdgeKind)> = all
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
                (distance, edge, kind)
            })
            .collect();
        edges.sort_by_key(|&(distance, ..)| distance);
        let (total, end) = (edges.len(), first.saturating_add(count).min(edges.len()));
        // Names cost more than distances: only those are looked up that decide about what was asked for.
        let mut at = 0;
        while at < end {
            let same = edges[at..].partition_point(|&(distance, ..)| distance == edges[at].0);
            if at + same > first {
                self.sort_by_name(&mut edges[at..at + same]);
            }
            at += same;
        }
        let some = edges[first.min(end)..end].iter().map(|&(_, edge, _)| edge).collect();
        (some, total)
    }

    /// Millions of edges have a few names: each is compared once.
    fn sort_by_name(&self, edges: &mut [(i32, u32, EdgeKind)]) {
        let heap = self.heap;
        let mut numbers: FxHashMap<(bool, u32), u32> = FxHashMap::default();
        let mut names = Vec::new();
        let mut keyed: Vec<(u32, (i32, u32, EdgeKind))> = edges
            .iter()
            .map(|&held| {
                let (_, edge, kind) = held;
                let number = *numbers
                    .entry((kind.has_string_name(), heap.edge_name_index(edge)))
                    .or_insert_with(|| {
                        let name = match heap.edge_name(edge) {
                            EdgeName::Index(index) => (false, true, Name(index.to_string())),
                            EdgeName::Name(name) => (name == "__proto__", false, Name(name.into_owned())),
                        };
                        names.push(name);
                        names.len() as u32 - 1
                    });
                (number, held)
            })
            .collect();
        let mut order: Vec<u32> = (0..names.len() as u32).collect();
        order.sort_by(|&one, &other| names[one as usize].cmp(&names[other as usize]));
        let mut ranks = vec![0; names.len()];
        let mut rank = 0;
        for (at, &name) in order.iter().enumerate() {
            let is_new = at > 0 && names[order[at - 1] as usize] != names[name as usize];
            rank += u32::from(is_new);
            ranks[name as usize] = rank;
        }
        keyed.sort_by_key(|&(number, _)| ranks[number as usize]);
        for (slot, (_, held)) in edges.iter_mut().zip(keyed) {
            *slot = held;
        }
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
