//! Distance of each object from the global objects, or else from the root.

use crate::devtools::name_set::NameSet;
use crate::devtools::page_objects::is_user_root;
use crate::devtools::weak_map_edges::WeakMapEdges;
use crate::{EdgeKind, NodeKind, Snapshot};

/// Base of distances that count from the root: no global object leads to these nodes. DevTools
/// shows a dash.
pub const BASE_SYSTEM_DISTANCE: i32 = 100_000_000;
/// Distance of a node that cannot be reached.
pub(crate) const NO_DISTANCE: i32 = -5;

/// Computes distances breadth-first from the user roots, then from the root. Nodes for which
/// `is_ignored` holds are not entered.
pub(crate) fn distances(
    snapshot: &Snapshot,
    weak_maps: &WeakMapEdges,
    is_ignored: impl Fn(u32) -> bool,
) -> Vec<i32> {
    let mut walk = Walk {
        snapshot,
        weak_maps,
        native_contexts: NameSet::of(&snapshot.strings, |text| text == b"system / NativeContext"),
        function_maps: NameSet::of(&snapshot.strings, |text| text == b"sloppy_function_map"),
        descriptors: NameSet::of(&snapshot.strings, |text| text == b"(map descriptors)"),
        is_pending: vec![false; weak_maps.pair_count() as usize],
        distance: vec![NO_DISTANCE; snapshot.node_count() as usize],
        queue: Vec::new(),
        is_ignored,
    };
    let root = snapshot.root;
    for node in snapshot.graph.targets_of(root) {
        if is_user_root(snapshot, node) {
            walk.distance[node as usize] = 1;
            walk.queue.push(node);
        }
    }
    let has_user_roots = !walk.queue.is_empty();
    walk.run();
    walk.distance[root as usize] = if has_user_roots { BASE_SYSTEM_DISTANCE } else { 0 };
    walk.queue.push(root);
    walk.run();
    walk.distance
}

struct Walk<'a, F> {
    snapshot: &'a Snapshot,
    weak_maps: &'a WeakMapEdges,
    native_contexts: NameSet,
    function_maps: NameSet,
    descriptors: NameSet,
    /// For each pair of a WeakMap entry's edges, whether one of them was seen.
    is_pending: Vec<bool>,
    distance: Vec<i32>,
    queue: Vec<u32>,
    is_ignored: F,
}

/// Rule for the edges of a node that are not followed, besides weak ones.
#[derive(PartialEq)]
enum Source {
    Usual,
    NativeContext,
    Descriptors,
}

impl<F: Fn(u32) -> bool> Walk<'_, F> {
    fn run(&mut self) {
        // One distance after the other, so that only two of them are in memory.
        let mut level = Vec::new();
        while !self.queue.is_empty() {
            std::mem::swap(&mut level, &mut self.queue);
            for &node in &level {
                self.visit(node);
            }
            level.clear();
        }
    }

    fn visit(&mut self, node: u32) {
        let snapshot = self.snapshot;
        let next = self.distance[node as usize] + 1;
        let source = match snapshot.kind(node) {
            NodeKind::HIDDEN if self.native_contexts.contains(snapshot.name_number(node)) => {
                Source::NativeContext
            }
            NodeKind::ARRAY if self.descriptors.contains(snapshot.name_number(node)) => Source::Descriptors,
            _ => Source::Usual,
        };
        for edge in snapshot.graph.edges(node) {
            let target = snapshot.graph.target(edge);
            if self.distance[target as usize] == NO_DISTANCE && self.is_followed(&source, edge, target) {
                self.distance[target as usize] = next;
                self.queue.push(target);
            }
        }
    }

    fn is_followed(&mut self, source: &Source, edge: u32, target: u32) -> bool {
        let kind = self.snapshot.edge_kind(edge);
        let name = || self.snapshot.edge_name_number(edge);
        if kind == EdgeKind::WEAK || (self.is_ignored)(target) {
            return false;
        }
        match source {
            Source::NativeContext if kind.has_string_name() && self.function_maps.contains(name()) => false,
            // A map shares its descriptors with other maps, whose entries say nothing about this
            // one.
            Source::Descriptors => {
                let index = if kind.has_string_name() {
                    leading_number(self.snapshot.strings.get(name()))
                } else {
                    Some(name())
                };
                index.is_some_and(|index| index < 2 || index % 3 != 1) || index.is_none()
            }
            // A WeakMap entry's value is as far as the farther of its key and its table: the second
            // edge counts.
            _ if kind == EdgeKind::INTERNAL => match self.weak_maps.get(name()) {
                Some(edge) => {
                    let pending = &mut self.is_pending[edge.pair as usize];
                    *pending = !*pending;
                    !*pending
                }
                None => true,
            },
            _ => true,
        }
    }
}

/// Parses the number at the start of a name like JavaScript's `parseInt`; `None` for NaN.
fn leading_number(text: &[u8]) -> Option<u32> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..digits]).ok()?.parse().ok()
}
