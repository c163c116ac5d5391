//! A snapshot with everything computed that the analyses need.

use std::borrow::Cow;
use std::collections::HashMap;

use heapr_graph::{Dominators, Graph, Retainers, distances, retained_bytes};

use super::heap::Heap;
use crate::{DomState, EdgeKind, Location, NodeKind, Snapshot};

/// A snapshot, its retainers, dominators, retained sizes and distances.
#[derive(Debug)]
pub struct OpenHeap {
    snapshot: Snapshot,
    retainers: Retainers,
    dominators: Dominators,
    retained: Vec<u64>,
    distances: Vec<u32>,
}

/// What DevTools adds to the distance of objects that only the engine's own roots hold.
const SYSTEM_DISTANCE: u32 = 100_000_000;

impl OpenHeap {
    /// Computes what is missing.
    pub fn of(snapshot: Snapshot) -> Self {
        let graph = snapshot.graph();
        let root = snapshot.root();
        let tables = tables_of_weak_maps(&snapshot);
        let dominators = Dominators::of(graph, root, |edge, from, _| match snapshot.edge_kind(edge) {
            EdgeKind::WEAK => false,
            EdgeKind::SHORTCUT => from == root,
            // The value of a WeakMap entry hangs from its key alone, not from the table.
            EdgeKind::INTERNAL => {
                tables.get(&snapshot.edge_name_number(edge)).is_none_or(|&table| table != snapshot.id(from))
            }
            _ => true,
        });
        let retained = retained_bytes(&dominators, |node| snapshot.self_bytes(node));
        let user_roots: Vec<(u32, u32)> = graph
            .edges(root)
            .map(|edge| graph.target(edge))
            .filter(|&node| {
                snapshot.kind(node) != NodeKind::SYNTHETIC || snapshot.name(node) == b"(Document DOM trees)"
            })
            .map(|node| (node, 1))
            .collect();
        let rest = [(root, if user_roots.is_empty() { 0 } else { SYSTEM_DISTANCE })];
        let distances = distances(graph, [user_roots.as_slice(), &rest], |edge, _, _| {
            snapshot.edge_kind(edge) != EdgeKind::WEAK
        });
        let retainers = Retainers::of(graph);
        Self { snapshot, retainers, dominators, retained, distances }
    }

    /// The snapshot as it was read.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }
}

/// For each edge name of a WeakMap's entry the id of the table.
fn tables_of_weak_maps(snapshot: &Snapshot) -> HashMap<u32, u64> {
    let strings = snapshot.strings();
    let mut tables = HashMap::new();
    for number in 0..strings.count() {
        let text = strings.get(number);
        if !text.ends_with(b")") || !text.windows(17).any(|part| part == b" pair in WeakMap ") {
            continue;
        }
        let text = String::from_utf8_lossy(text);
        let id = text.rsplit_once("(table @").and_then(|(_, id)| id.strip_suffix(')'));
        if let Some(id) = id.and_then(|id| id.parse().ok()) {
            tables.insert(number, id);
        }
    }
    tables
}

impl Heap for OpenHeap {
    fn graph(&self) -> &Graph {
        self.snapshot.graph()
    }

    fn retainers(&self) -> &Retainers {
        &self.retainers
    }

    fn dominators(&self) -> &Dominators {
        &self.dominators
    }

    fn retained_bytes(&self, node: u32) -> u64 {
        self.retained[node as usize]
    }

    fn self_bytes(&self, node: u32) -> u64 {
        self.snapshot.self_bytes(node)
    }

    fn id(&self, node: u32) -> u64 {
        self.snapshot.id(node)
    }

    fn kind(&self, node: u32) -> NodeKind {
        self.snapshot.kind(node)
    }

    fn name_index(&self, node: u32) -> u32 {
        self.snapshot.name_number(node)
    }

    fn string_count(&self) -> u32 {
        self.snapshot.strings().count()
    }

    fn string(&self, index: u32) -> Cow<'_, str> {
        self.snapshot.strings().text(index)
    }

    fn edge_kind(&self, edge: u32) -> EdgeKind {
        self.snapshot.edge_kind(edge)
    }

    fn edge_name_index(&self, edge: u32) -> u32 {
        self.snapshot.edge_name_number(edge)
    }

    fn distance(&self, node: u32) -> u32 {
        self.distances[node as usize]
    }

    fn location(&self, node: u32) -> Option<Location> {
        self.snapshot.locations().of(node)
    }

    fn locations(&self) -> &[Location] {
        self.snapshot.locations().all()
    }

    fn is_detached(&self, node: u32) -> bool {
        self.snapshot.dom_state(node) == DomState::Detached
    }
}
