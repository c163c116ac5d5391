//! Matching of objects by the path that leads to them from the root.
//!
//! ```text
//!  root = root                               two nodes that match ...
//!    .cache = .cache          by name        ... their targets match by name, kind and class
//!      [0] [1] [2] = [0] [1]  by order       ... and without names in order, within a class
//! ```
//!
//! Names say more than positions: all targets that named edges lead to are matched before any
//! unnamed edges. In a collection that lost its first objects and gained new last ones, the wrong
//! objects are paired, but the number of pairs is right.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::FxHashMap;

use super::super::storage::is_storage;
use super::{HeapView, MatchedBy, Matching, NOT_THERE};
use crate::{EdgeKind, NodeKind};

/// Largest number of bytes that V8 writes of a text (`--heap-snapshot-string-limit`).
const TEXT_LIMIT: usize = 1024;

pub(super) fn matched(before: &impl HeapView, after: &impl HeapView) -> Matching {
    let (before, after) = (Hashed::of(before), Hashed::of(after));
    let mut matching = Matching::nothing(before.heap, after.heap, MatchedBy::Place);
    let roots = (before.heap.root(), after.heap.root());
    matching.pair(roots.0, roots.1);
    let mut by_name = VecDeque::from([roots]);
    let mut by_order = VecDeque::new();
    let (mut old_edges, mut new_edges) = (Vec::new(), Vec::new());
    let mut changed = Vec::new();
    loop {
        let (pair, is_by_name) = match by_name.pop_front() {
            Some(pair) => (pair, true),
            None => match by_order.pop_front() {
                Some(pair) => (pair, false),
                None => break,
            },
        };
        before.keyed_targets(pair.0, is_by_name, &mut old_edges);
        after.keyed_targets(pair.1, is_by_name, &mut new_edges);
        let (mut old, mut new) = (old_edges.iter().peekable(), new_edges.iter().peekable());
        while let (Some(&&(old_key, _, a)), Some(&&(new_key, _, b))) = (old.peek(), new.peek()) {
            if old_key < new_key {
                old.next();
                continue;
            }
            if old_key > new_key {
                new.next();
                continue;
            }
            // A node that is paired already cannot take another partner.
            let (is_old_free, is_new_free) =
                (matching.later[a as usize] == NOT_THERE, matching.earlier[b as usize] == NOT_THERE);
            let is_changed = is_old_free && is_new_free && before.is_other_text(a, &after, b);
            if is_changed {
                changed.push((a, b));
            } else if is_old_free && is_new_free {
                matching.pair(a, b);
                by_name.push_back((a, b));
            }
            let is_pair = is_changed || matching.later[a as usize] == b;
            if is_pair || !is_old_free {
                old.next();
            }
            if is_pair || !is_new_free {
                new.next();
            }
        }
        if is_by_name {
            by_order.push_back(pair);
        }
    }
    before.pair_equal_texts(&after, &mut matching);
    // Pairs a text that went with the text that came at the same position: a counter, a state.
    for (a, b) in changed {
        if matching.later[a as usize] == NOT_THERE && matching.earlier[b as usize] == NOT_THERE {
            matching.pair(a, b);
        }
    }
    matching
}

/// Heap with the hashes of its names, which can be compared across snapshots.
struct Hashed<'a, H> {
    heap: &'a H,
    strings: Vec<u64>,
}

/// Key, edge, target.
type Keyed = (u64, u32, u32);

impl<'a, H: HeapView> Hashed<'a, H> {
    fn of(heap: &'a H) -> Self {
        let strings = (0..heap.string_count()).map(|index| hash_of_name(&heap.string(index))).collect();
        Self { heap, strings }
    }

    fn string(&self, index: u32) -> u64 {
        self.strings.get(index as usize).copied().unwrap_or(0)
    }

    /// Pairs the remaining equal texts: a text has no identity, and a text with many referrers has
    /// many positions.
    fn pair_equal_texts(&self, after: &Hashed<'_, impl HeapView>, matching: &mut Matching) {
        let mut free: FxHashMap<(Cow<'_, [u8]>, u64), VecDeque<u32>> = FxHashMap::default();
        for node in (0..self.heap.graph().node_count()).filter(|&node| self.is_whole_text(node)) {
            if matching.later[node as usize] == NOT_THERE {
                free.entry(self.text(node)).or_default().push_back(node);
            }
        }
        for node in (0..after.heap.graph().node_count()).filter(|&node| after.is_whole_text(node)) {
            if matching.earlier[node as usize] == NOT_THERE
                && let Some(was) = free.get_mut(&after.text(node)).and_then(VecDeque::pop_front)
            {
                matching.pair(was, node);
            }
        }
    }

    /// Whether both nodes are whole texts that differ.
    fn is_other_text(&self, node: u32, after: &Hashed<'_, impl HeapView>, other: u32) -> bool {
        self.is_whole_text(node) && after.is_whole_text(other) && self.text(node) != after.text(other)
    }

    fn text(&self, node: u32) -> (Cow<'_, [u8]>, u64) {
        (self.heap.string_bytes(self.heap.name_index(node)), self.heap.self_bytes(node))
    }

    /// Whether a node is a text that the file contains uncut.
    fn is_whole_text(&self, node: u32) -> bool {
        self.heap.kind(node) == NodeKind::STRING
            && self.heap.string_bytes(self.heap.name_index(node)).len() < TEXT_LIMIT
    }

    /// Collects the edges of `node`, sorted by key and position: those with meaningful names, or
    /// the others.
    fn keyed_targets(&self, node: u32, is_by_name: bool, edges: &mut Vec<Keyed>) {
        edges.clear();
        let graph = self.heap.graph();
        for edge in graph.edges(node) {
            let kind = self.heap.edge_kind(edge);
            if kind == EdgeKind::WEAK {
                continue;
            }
            let target = graph.target(edge);
            let name = self.heap.edge_name_index(edge);
            // Even named edges of a store are named by position, which changes when the store
            // grows. Below a root, the targets' names are matched: they are the names of the roots.
            let is_root = self.heap.kind(target) == NodeKind::SYNTHETIC;
            let is_named = kind.has_string_name() && !is_storage(self.heap, node);
            if (is_named || is_root) != is_by_name {
                continue;
            }
            let class = (self.heap.kind(target), self.string(self.heap.name_index(target)));
            let key = if is_named && !is_root {
                // A field's text may change (a counter, a state) and is still that field's value.
                let class = if class.0.is_string() { (class.0, 0) } else { class };
                hash_of(&(kind, self.string(name), class))
            } else {
                hash_of(&class)
            };
            edges.push((key, edge, target));
        }
        edges.sort_unstable();
    }
}

/// Hashes a name without the ids in it: `system / Context / scope @33063`, `… pair in WeakMap
/// (table @5)`.
fn hash_of_name(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (number, part) in name.split('@').enumerate() {
        if number > 0 {
            hasher.write_u8(b'@');
        }
        let rest = if number > 0 { part.trim_start_matches(|c: char| c.is_ascii_digit()) } else { part };
        hasher.write(rest.as_bytes());
    }
    hasher.finish()
}

fn hash_of(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
