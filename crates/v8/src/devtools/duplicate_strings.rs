//! Strings with the same text.

use std::borrow::Cow;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use crate::devtools::absent_names::has_absent;
use crate::devtools::{DisplayNames, Heap};
use crate::format::NOT_IN_FILE;
use crate::node_set::NodeSet;
use crate::{EdgeKind, NodeKind, Snapshot};

/// Strings that are in memory more than once.
#[derive(Debug)]
pub struct DuplicateStrings {
    /// Groups of at least two nodes with the same text.
    pub groups: Vec<Vec<u32>>,
}

/// Identity of a string: its text, and for a text that V8 cut off also its length and hash.
type Key<'a> = (Cow<'a, [u8]>, Option<(Option<u64>, Option<u64>)>);

impl DuplicateStrings {
    /// Groups all strings of the heap by text.
    pub fn of(heap: &Heap) -> Self {
        let snapshot = heap.snapshot();
        let mut first_of: FxHashMap<Key<'_>, u32> = FxHashMap::default();
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut group_of_first: FxHashMap<u32, usize> = FxHashMap::default();
        let mut names = DisplayNames::default();
        // Strings without a text in the file may differ.
        let lacks_texts = snapshot.strings().find(NOT_IN_FILE).is_some();
        for node in 0..snapshot.node_count() {
            let kind = snapshot.kind(node);
            if !matches!(kind, NodeKind::STRING | NodeKind::CONS_STRING)
                || snapshot.self_bytes(node) == 0
                || is_flat(heap, &mut names, node)
            {
                continue;
            }
            let text = names.of(heap, node);
            if lacks_texts && has_absent(&text) {
                continue;
            }
            let whole = is_truncated(snapshot, node)
                .then(|| (number_of(snapshot, node, b"length"), number_of(snapshot, node, b"hash")));
            match first_of.entry((text, whole)) {
                Entry::Vacant(entry) => {
                    entry.insert(node);
                }
                Entry::Occupied(entry) => {
                    let group = *group_of_first.entry(*entry.get()).or_insert_with(|| {
                        groups.push(vec![*entry.get()]);
                        groups.len() - 1
                    });
                    groups[group].push(node);
                }
            }
        }
        Self { groups }
    }

    /// Returns all nodes of all groups.
    pub(crate) fn nodes(&self, node_count: u32) -> NodeSet {
        let mut nodes = NodeSet::new(node_count);
        for &node in self.groups.iter().flatten() {
            nodes.insert(node);
        }
        nodes
    }
}

/// Whether V8 has flattened a concatenated string: one part has the text and the other is empty.
fn is_flat(heap: &Heap, names: &mut DisplayNames, node: u32) -> bool {
    let snapshot = heap.snapshot();
    snapshot.kind(node) == NodeKind::CONS_STRING
        && snapshot.graph().edges(node).any(|edge| {
            snapshot.edge_kind(edge) == EdgeKind::INTERNAL
                && matches!(snapshot.strings().get(snapshot.edge_name_number(edge)), b"first" | b"second")
                && names.of(heap, snapshot.graph().target(edge)).is_empty()
        })
}

fn is_truncated(snapshot: &Snapshot, node: u32) -> bool {
    let value = snapshot
        .target_of(node, EdgeKind::INTERNAL, b"truncated")
        .and_then(|flag| value_of(snapshot, flag, b"bool"));
    value == Some(b"true")
}

fn number_of(snapshot: &Snapshot, node: u32, name: &[u8]) -> Option<u64> {
    let number = snapshot.target_of(node, EdgeKind::INTERNAL, name)?;
    std::str::from_utf8(value_of(snapshot, number, b"int")?).ok()?.parse().ok()
}

/// Returns the text of a number node's value, if the node has that name.
fn value_of<'a>(snapshot: &'a Snapshot, node: u32, name: &[u8]) -> Option<&'a [u8]> {
    if snapshot.kind(node) != NodeKind::NUMBER || snapshot.name(node) != name {
        return None;
    }
    Some(snapshot.name(snapshot.target_of(node, EdgeKind::INTERNAL, b"value")?))
}
