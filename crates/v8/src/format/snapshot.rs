//! A snapshot in memory: what the file says, in columns.

use std::borrow::Cow;

use heapr_graph::Graph;

use crate::format::allocation_trace::AllocationTrace;
use crate::format::edge_columns::EdgeColumns;
use crate::format::locations::Locations;
use crate::format::meta::Meta;
use crate::format::node_columns::NodeColumns;
use crate::format::problem::Problem;
use crate::format::strings::Strings;
use crate::kinds::{DomState, EdgeKind, NodeKind};

/// A heap snapshot as it was written.
///
/// Nodes and edges have numbers from 0 on; the edges of a node follow each other. What DevTools
/// derives from it (classes, sizes that count for an object, distances) is in [`crate::devtools`].
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) meta: Meta,
    pub(crate) nodes: NodeColumns,
    pub(crate) edges: EdgeColumns,
    pub(crate) graph: Graph,
    pub(crate) root: u32,
    pub(crate) strings: Strings,
    pub(crate) locations: Locations,
    pub(crate) trace: Option<AllocationTrace>,
    pub(crate) problems: Vec<Problem>,
}

impl Snapshot {
    /// What the file says about itself.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Who refers to whom.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The node that everything hangs from.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> u32 {
        self.graph.node_count()
    }

    /// How many edges there are.
    pub fn edge_count(&self) -> u32 {
        self.graph.edge_count()
    }

    /// All names.
    pub fn strings(&self) -> &Strings {
        &self.strings
    }

    /// Where functions and objects were made.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }

    /// Functions, calls and samples, in the file of an allocation timeline.
    pub fn trace(&self) -> Option<&AllocationTrace> {
        self.trace.as_ref()
    }

    /// What is wrong with the file, as far as reading showed; see [`Self::check`].
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What a node stands for.
    #[inline]
    pub fn kind(&self, node: u32) -> NodeKind {
        self.nodes.kind(node)
    }

    /// The number of a node's name.
    #[inline]
    pub(crate) fn name_number(&self, node: u32) -> u32 {
        self.nodes.names[node as usize]
    }

    /// A node's name as the file has it, WTF-8.
    #[inline]
    pub fn name(&self, node: u32) -> &[u8] {
        self.strings.get(self.name_number(node))
    }

    /// A node's name as the file has it, to show.
    pub fn name_text(&self, node: u32) -> Cow<'_, str> {
        self.strings.text(self.name_number(node))
    }

    /// The number that stays with an object from snapshot to snapshot.
    #[inline]
    pub fn id(&self, node: u32) -> u64 {
        self.nodes.id(node)
    }

    /// The first node with that id.
    pub fn node_of_id(&self, id: u64) -> Option<u32> {
        (0..self.node_count()).find(|&node| self.id(node) == id)
    }

    /// Bytes of the object itself.
    #[inline]
    pub fn self_bytes(&self, node: u32) -> u64 {
        self.nodes.self_bytes(node)
    }

    /// Whether a DOM node hangs in its document.
    pub fn dom_state(&self, node: u32) -> DomState {
        self.nodes.dom_state(node)
    }

    /// The node of the allocation trace that made the object; 0 if there is none.
    pub fn trace_node_id(&self, node: u32) -> u32 {
        self.nodes.trace_node_ids.get(node as usize).copied().unwrap_or(0)
    }

    /// What an edge stands for.
    #[inline]
    pub fn edge_kind(&self, edge: u32) -> EdgeKind {
        self.edges.kind(edge)
    }

    /// An edge's `name_or_index`: the number of a string, or of an element
    /// ([`EdgeKind::has_string_name`]).
    #[inline]
    pub(crate) fn edge_name_number(&self, edge: u32) -> u32 {
        self.edges.names[edge as usize]
    }

    /// An edge's name: of an element its index.
    pub fn edge_name(&self, edge: u32) -> Cow<'_, str> {
        let number = self.edge_name_number(edge);
        if self.edge_kind(edge).has_string_name() {
            self.strings.text(number)
        } else {
            Cow::Owned(number.to_string())
        }
    }

    /// Whether an edge has a string of this text for a name.
    pub(crate) fn is_edge_named(&self, edge: u32, name: &[u8]) -> bool {
        self.edge_kind(edge).has_string_name() && self.strings.get(self.edge_name_number(edge)) == name
    }

    /// Where the first edge of `kind` and `name` goes.
    pub(crate) fn target_of(&self, node: u32, kind: EdgeKind, name: &[u8]) -> Option<u32> {
        let mut edges = self.graph.edges(node);
        let found = edges.find(|&edge| self.edge_kind(edge) == kind && self.is_edge_named(edge, name))?;
        Some(self.graph.target(found))
    }

    /// In a file that broke off before the strings, names mean nothing.
    pub(crate) fn forget_names_outside(&mut self) {
        if self.strings.count() == 0 {
            let _ = self.strings.push(b"");
        }
    }
}
