//! Sizes of V8's inner objects, counted for the objects that own them.
//!
//! An array's elements, a map's table, an object's property store are nodes of their own. Where
//! only one object leads to such a node, its bytes count for that object, and it has none itself.
//! Not so in snapshots with exposed internals.

use crate::devtools::name_set::NameSet;
use crate::devtools::page_objects::has_user_roots;
use crate::{EdgeKind, NodeKind, Snapshot};

const UNVISITED: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// The owner of each node, if the snapshot is one whose sizes move: itself, another node, or one of
/// the two constants.
#[derive(Debug)]
pub(crate) struct Owners(Vec<u32>);

pub(crate) fn owners(snapshot: &Snapshot) -> Option<Owners> {
    if !has_user_roots(snapshot) {
        return None;
    }
    let external = NameSet::of(&snapshot.strings, |text| text == b"system / ExternalStringData");
    let graph = &snapshot.graph;
    let mut owners: Vec<u32> = (0..graph.node_count())
        .map(|node| match snapshot.kind(node) {
            NodeKind::HIDDEN | NodeKind::ARRAY => UNVISITED,
            NodeKind::NATIVE if external.contains(snapshot.name_number(node)) => UNVISITED,
            _ => node,
        })
        .collect();
    let mut stack = Vec::new();
    for first in 0..graph.node_count() {
        if owners[first as usize] != first {
            continue;
        }
        stack.push(first);
        while let Some(node) = stack.pop() {
            let owner = owners[node as usize];
            for edge in graph.edges(node) {
                let target = graph.target(edge);
                let slot = &mut owners[target as usize];
                if *slot == target
                    || *slot == owner
                    || *slot == SEVERAL
                    || snapshot.edge_kind(edge) == EdgeKind::WEAK
                {
                    continue;
                }
                *slot = if *slot == UNVISITED { owner } else { SEVERAL };
                stack.push(target);
            }
        }
    }
    Some(Owners(owners))
}

/// Bytes of an inner object that count for its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedBytes {
    /// The inner object.
    pub node: u32,
    /// Its owner.
    pub owner: u32,
    /// How many.
    pub bytes: u64,
}

/// Moves the sizes, and tells which.
pub(crate) fn move_to_owners(snapshot: &mut Snapshot, owners: &Owners) -> Vec<MovedBytes> {
    let mut moved = Vec::new();
    for (node, &owner) in (0..).zip(&owners.0) {
        if owner == node
            || owner >= SEVERAL
            || snapshot.kind(owner) == NodeKind::SYNTHETIC
            || owner == snapshot.root
        {
            continue;
        }
        let bytes = snapshot.self_bytes(node);
        if bytes > 0 {
            moved.push(MovedBytes { node, owner, bytes });
        }
        snapshot.nodes.set_self_bytes(node, 0);
        let sum = snapshot.self_bytes(owner).saturating_add(bytes);
        snapshot.nodes.set_self_bytes(owner, sum);
    }
    moved.shrink_to_fit();
    moved
}
