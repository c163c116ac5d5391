//! Sizes of V8's internal objects, counted for the objects that own them.
//!
//! An array's elements, a map's table and an object's property store are nodes of their own. If a
//! single object leads to such a node, the node's bytes count for that object and the node itself
//! has size 0. In snapshots with exposed internals, and in heaps of other languages, sizes stay at
//! their nodes.

use crate::devtools::name_set::NameSet;
use crate::devtools::page_objects::has_user_roots;
use crate::{EdgeKind, NodeKind, Snapshot};

const UNVISITED: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

/// Owner of each node: itself, another node, or one of the two constants.
#[derive(Debug)]
pub(crate) struct Owners(Vec<u32>);

pub(crate) fn owners(snapshot: &Snapshot) -> Option<Owners> {
    if !has_user_roots(snapshot) || !snapshot.meta().language().counts_store_for_owner() {
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

/// Bytes of an internal object that count for its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedBytes {
    /// Node of the internal object.
    pub node: u32,
    /// Node of its owner.
    pub owner: u32,
    /// Number of bytes.
    pub bytes: u64,
}

/// Moves the sizes to the owners. Returns the moved sizes.
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
