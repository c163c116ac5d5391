//! Detachedness of DOM nodes: the states in the file, spread to nodes without a state.
//!
//! Native nodes referenced by an attached one are attached. Of the rest, nodes referenced by a
//! detached one are detached. The state does not spread through JavaScript objects, because the
//! embedder reports the state of each node that JavaScript refers to. Detached nodes get a name
//! that says so.

use rustc_hash::FxHashMap;

use crate::node_set::NodeSet;
use crate::{DomState, EdgeKind, NodeKind, Result, Snapshot};

const PREFIX: &[u8] = b"Detached ";

pub(crate) fn spread_dom_states(snapshot: &mut Snapshot) -> Result<()> {
    if snapshot.meta.node.detachedness.is_none() {
        mark_by_name(snapshot);
        return Ok(());
    }
    if !snapshot.nodes.has_dom_states() {
        return Ok(());
    }
    let mut spread = Spread {
        visited: NodeSet::new(snapshot.node_count()),
        attached: Vec::new(),
        detached: Vec::new(),
        renamed: FxHashMap::default(),
    };
    for node in 0..snapshot.node_count() {
        let state = snapshot.dom_state(node);
        if state != DomState::Unknown {
            spread.visit(snapshot, node, state)?;
        }
    }
    while let Some(node) = spread.attached.pop() {
        spread.visit_targets(snapshot, node, DomState::Attached)?;
    }
    while let Some(node) = spread.detached.pop() {
        spread.visit_targets(snapshot, node, DomState::Detached)?;
    }
    Ok(())
}

/// Marks nodes by name: snapshots without the field have the prefix in the name.
fn mark_by_name(snapshot: &mut Snapshot) {
    for node in 0..snapshot.node_count() {
        if snapshot.kind(node) == NodeKind::NATIVE && snapshot.name(node).starts_with(PREFIX) {
            snapshot.nodes.set_dom_state(node, DomState::Detached);
        }
    }
}

struct Spread {
    visited: NodeSet,
    attached: Vec<u32>,
    detached: Vec<u32>,
    renamed: FxHashMap<u32, u32>,
}

impl Spread {
    fn visit(&mut self, snapshot: &mut Snapshot, node: u32, state: DomState) -> Result<()> {
        if !self.visited.insert(node) || snapshot.kind(node) != NodeKind::NATIVE {
            return Ok(());
        }
        snapshot.nodes.set_dom_state(node, state);
        if state == DomState::Attached {
            self.attached.push(node);
            return Ok(());
        }
        self.detached.push(node);
        let old = snapshot.name_number(node);
        let new = match self.renamed.get(&old) {
            Some(&new) => new,
            None => {
                let name = [PREFIX, snapshot.strings.get(old)].concat();
                let new = snapshot.strings.push(&name)?;
                self.renamed.insert(old, new);
                new
            }
        };
        snapshot.nodes.names[node as usize] = new;
        Ok(())
    }

    fn visit_targets(&mut self, snapshot: &mut Snapshot, node: u32, state: DomState) -> Result<()> {
        for edge in snapshot.graph.edges(node) {
            if !matches!(snapshot.edge_kind(edge), EdgeKind::HIDDEN | EdgeKind::INVISIBLE | EdgeKind::WEAK) {
                let target = snapshot.graph.target(edge);
                self.visit(snapshot, target, state)?;
            }
        }
        Ok(())
    }
}
