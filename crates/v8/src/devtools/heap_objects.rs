//! [`Objects`] of a heap in memory.

use std::borrow::Cow;
use std::ops::Range;

use crate::devtools::Heap;
use crate::objects::{CaptureMode, Class, NodeFacts, Objects, ScriptPaths};
use crate::{DomState, EdgeKind, Location, Meta, NodeKind};

impl Objects for Heap {
    fn node_count(&self) -> u32 {
        self.snapshot().node_count()
    }

    fn edge_count(&self) -> u32 {
        self.snapshot().edge_count()
    }

    fn root(&self) -> u32 {
        self.snapshot().root()
    }

    fn meta(&self) -> &Meta {
        self.snapshot().meta()
    }

    fn capture_mode(&self) -> CaptureMode {
        self.mode()
    }

    fn kind(&self, node: u32) -> NodeKind {
        self.snapshot().kind(node)
    }

    fn dom_state(&self, node: u32) -> DomState {
        self.snapshot().dom_state(node)
    }

    fn name_index(&self, node: u32) -> u32 {
        self.snapshot().name_number(node)
    }

    fn id(&self, node: u32) -> u64 {
        self.snapshot().id(node)
    }

    fn node_of_id(&self, id: u64) -> Option<u32> {
        self.snapshot().node_of_id(id)
    }

    fn self_bytes(&self, node: u32) -> u64 {
        self.snapshot().self_bytes(node)
    }

    fn retained_bytes(&self, node: u32) -> u64 {
        self.retained()[node as usize]
    }

    fn devtools_distance(&self, node: u32) -> i32 {
        self.distances()[node as usize]
    }

    fn class_of(&self, node: u32) -> u32 {
        self.classes().of_node(node)
    }

    fn dominator(&self, node: u32) -> u32 {
        self.dominators().idom(node)
    }

    fn dominated_count(&self, node: u32) -> u32 {
        self.dominator_tree().subtree_count(node)
    }

    fn dominated_by(&self, node: u32) -> Cow<'_, [u32]> {
        Cow::Borrowed(self.dominator_tree().children(node))
    }

    fn trace_node_id(&self, node: u32) -> u32 {
        self.snapshot().trace_node_id(node)
    }

    fn location(&self, node: u32) -> Option<Location> {
        self.snapshot().locations().of(node)
    }

    fn edges(&self, node: u32) -> Range<u32> {
        self.snapshot().graph().edges(node)
    }

    fn target(&self, edge: u32) -> u32 {
        self.snapshot().graph().target(edge)
    }

    fn source(&self, edge: u32) -> u32 {
        self.snapshot().graph().source(edge)
    }

    fn edge_kind(&self, edge: u32) -> EdgeKind {
        self.snapshot().edge_kind(edge)
    }

    fn edge_name_index(&self, edge: u32) -> u32 {
        self.snapshot().edge_name_number(edge)
    }

    fn edges_into(&self, node: u32, most: usize) -> Cow<'_, [u32]> {
        let edges = self.retainers().edges_into(node);
        Cow::Borrowed(&edges[..edges.len().min(most)])
    }

    fn holders(&self, edges: &[u32]) -> Vec<(u32, EdgeKind)> {
        let sources = self.snapshot().graph().sources(edges);
        sources
            .into_iter()
            .zip(edges)
            .map(|(source, &edge)| (source, self.snapshot().edge_kind(edge)))
            .collect()
    }

    fn string_count(&self) -> u32 {
        self.snapshot().strings().count()
    }

    fn string_bytes(&self, index: u32) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.snapshot().strings().get(index))
    }

    fn visit_strings(&self, numbers: Range<u32>, visit: &mut dyn FnMut(u32, &[u8])) {
        for number in numbers {
            visit(number, self.snapshot().strings().get(number));
        }
    }

    fn class_list(&self) -> &[Class] {
        self.classes().all()
    }

    fn visit_nodes(&self, nodes: Range<u32>, visit: &mut dyn FnMut(NodeFacts)) {
        let (snapshot, classes, retained) = (self.snapshot(), self.classes(), self.retained());
        for node in nodes {
            visit(NodeFacts {
                node,
                kind: snapshot.kind(node),
                dom_state: snapshot.dom_state(node),
                name_index: snapshot.name_number(node),
                class: classes.of_node(node),
                id: snapshot.id(node),
                self_bytes: snapshot.self_bytes(node),
                retained_bytes: retained[node as usize],
            });
        }
    }

    fn visit_edges(&self, nodes: Range<u32>, visit: &mut dyn FnMut(u32, EdgeKind, u32)) {
        let snapshot = self.snapshot();
        for node in nodes {
            for edge in snapshot.graph().edges(node) {
                visit(node, snapshot.edge_kind(edge), snapshot.edge_name_number(edge));
            }
        }
    }

    fn script_paths(&self) -> ScriptPaths {
        ScriptPaths::of(self.snapshot()).with_maps(self.source_maps())
    }
}
