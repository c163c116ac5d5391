//! Snapshot in memory: the contents of the file, in columns.

use std::borrow::Cow;

use heapr_graph::Graph;

use crate::format::allocation_trace::AllocationTrace;
use crate::format::edge_names::EdgeNames;
use crate::format::locations::Locations;
use crate::format::meta::Meta;
use crate::format::node_columns::NodeColumns;
use crate::format::problem::Problem;
use crate::format::strings::{NOT_IN_FILE, Strings};
use crate::kinds::{DomState, EdgeKind, NodeKind};

/// Heap snapshot as it was written.
///
/// Nodes and edges are numbered from 0; the edges of a node are consecutive. [`crate::devtools`]
/// derives from it what DevTools shows: classes, sizes, distances.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) meta: Meta,
    pub(crate) nodes: NodeColumns,
    pub(crate) edge_names: EdgeNames,
    pub(crate) graph: Graph,
    pub(crate) root: u32,
    pub(crate) strings: Strings,
    pub(crate) locations: Locations,
    pub(crate) trace: Option<AllocationTrace>,
    pub(crate) problems: Vec<Problem>,
}

impl Snapshot {
    /// Description of the snapshot in its own file.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Graph of nodes and edges.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Root node.
    pub fn root(&self) -> u32 {
        self.root
    }

    /// Number of nodes.
    pub fn node_count(&self) -> u32 {
        self.graph.node_count()
    }

    /// Number of edges.
    pub fn edge_count(&self) -> u32 {
        self.graph.edge_count()
    }

    /// String table with all names.
    pub fn strings(&self) -> &Strings {
        &self.strings
    }

    /// Source locations of functions and constructors.
    pub fn locations(&self) -> &Locations {
        &self.locations
    }

    /// Functions, calls and samples in the file of an allocation timeline.
    pub fn trace(&self) -> Option<&AllocationTrace> {
        self.trace.as_ref()
    }

    /// Defects that were found while reading; [`Self::check`] finds more.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Adds a defect of the file that the snapshot was made from.
    pub fn add_problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Kind of a node.
    #[inline]
    pub fn kind(&self, node: u32) -> NodeKind {
        self.nodes.kind(node)
    }

    /// String number of a node's name.
    #[inline]
    pub(crate) fn name_number(&self, node: u32) -> u32 {
        self.nodes.names[node as usize]
    }

    /// Name of a node as in the file, WTF-8.
    #[inline]
    pub fn name(&self, node: u32) -> &[u8] {
        self.strings.get(self.name_number(node))
    }

    /// Name of a node as a `str`, invalid parts replaced.
    pub fn name_text(&self, node: u32) -> Cow<'_, str> {
        self.strings.text(self.name_number(node))
    }

    /// Id of an object, which stays the same from snapshot to snapshot.
    #[inline]
    pub fn id(&self, node: u32) -> u64 {
        self.nodes.id(node)
    }

    /// Returns the first node with that id.
    pub fn node_of_id(&self, id: u64) -> Option<u32> {
        (0..self.node_count()).find(|&node| self.id(node) == id)
    }

    /// Self size of a node, in bytes.
    #[inline]
    pub fn self_bytes(&self, node: u32) -> u64 {
        self.nodes.self_bytes(node)
    }

    /// State of a DOM node: attached to its document, detached or unknown.
    pub fn dom_state(&self, node: u32) -> DomState {
        self.nodes.dom_state(node)
    }

    /// Id of the allocation trace's node in which the object was allocated; 0 if unknown.
    pub fn trace_node_id(&self, node: u32) -> u32 {
        self.nodes.trace_node_ids.get(node as usize).copied().unwrap_or(0)
    }

    /// Kind of an edge.
    #[inline]
    pub fn edge_kind(&self, edge: u32) -> EdgeKind {
        EdgeKind(self.graph.tag(edge) as u8)
    }

    /// Value of an edge's `name_or_index`: a string number or an element's index
    /// ([`EdgeKind::has_string_name`]).
    #[inline]
    pub(crate) fn edge_name_number(&self, edge: u32) -> u32 {
        self.edge_names.get(edge)
    }

    /// Name of an edge; for an element, its index.
    pub fn edge_name(&self, edge: u32) -> Cow<'_, str> {
        let number = self.edge_name_number(edge);
        if self.edge_kind(edge).has_string_name() {
            self.strings.text(number)
        } else {
            Cow::Owned(number.to_string())
        }
    }

    /// Whether an edge's name is a string with this text.
    pub(crate) fn is_edge_named(&self, edge: u32, name: &[u8]) -> bool {
        self.edge_kind(edge).has_string_name() && self.strings.get(self.edge_name_number(edge)) == name
    }

    /// Returns the target of the first edge of `kind` and `name`.
    pub(crate) fn target_of(&self, node: u32, kind: EdgeKind, name: &[u8]) -> Option<u32> {
        let mut edges = self.graph.edges(node);
        let found = edges.find(|&edge| self.edge_kind(edge) == kind && self.is_edge_named(edge, name))?;
        Some(self.graph.target(found))
    }

    /// Adds a placeholder for the names of a file that is truncated before the strings.
    pub(crate) fn forget_names_outside(&mut self) {
        if self.strings.count() == 0 {
            let _ = self.strings.push(NOT_IN_FILE);
        }
    }
}
