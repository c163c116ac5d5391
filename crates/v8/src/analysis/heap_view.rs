//! What the analyses need to know of a snapshot.

use std::borrow::Cow;

use heapr_graph::{Dominators, Graph, Retainers};

use crate::devtools::{self, ScriptPaths};
use crate::{DomState, EdgeKind, Location, NodeKind};

/// What an edge is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeName<'a> {
    /// Elements and hidden fields have a number.
    Index(u32),
    /// All others have a name.
    Name(Cow<'a, str>),
}

/// What a class name is made of when nodes of a kind have no names of their own.
pub(super) fn group_name(kind: NodeKind) -> &'static str {
    match kind {
        NodeKind::HIDDEN => "(system)",
        NodeKind::ARRAY => "(array)",
        NodeKind::STRING => "(string)",
        NodeKind::CODE => "(compiled code)",
        NodeKind::CLOSURE => "Function",
        NodeKind::REGEXP => "RegExp",
        NodeKind::NUMBER => "(number)",
        NodeKind::SYNTHETIC => "(synthetic)",
        NodeKind::CONS_STRING => "(concatenated string)",
        NodeKind::SLICED_STRING => "(sliced string)",
        NodeKind::SYMBOL => "(symbol)",
        NodeKind::BIGINT => "(bigint)",
        NodeKind::OBJECT_SHAPE => "(object shape)",
        _ => "(other)",
    }
}

/// An opened snapshot with what was computed over it.
pub trait HeapView {
    /// The nodes and edges.
    fn graph(&self) -> &Graph;
    /// The incoming edges.
    fn retainers(&self) -> &Retainers;
    /// The dominators over the edges that keep their target alive.
    fn dominators(&self) -> &Dominators;
    /// What would be freed with the node.
    fn retained_bytes(&self, node: u32) -> u64;
    /// The node's own size.
    fn self_bytes(&self, node: u32) -> u64;
    /// The number that the node keeps in all snapshots of its isolate.
    fn id(&self, node: u32) -> u64;
    /// What the node is.
    fn kind(&self, node: u32) -> NodeKind;
    /// The number of the node's name among the strings.
    fn name_index(&self, node: u32) -> u32;
    /// How many strings there are.
    fn string_count(&self) -> u32;
    /// A string of the file.
    fn string(&self, index: u32) -> Cow<'_, str>;
    /// How an edge refers.
    fn edge_kind(&self, edge: u32) -> EdgeKind;
    /// The edge's index, or the number of its name among the strings.
    fn edge_name_index(&self, edge: u32) -> u32;
    /// The distance from the roots as DevTools counts it; `u32::MAX` if it has none.
    fn distance(&self, node: u32) -> u32;
    /// Where the function, or the object's constructor, stands.
    fn location(&self, node: u32) -> Option<Location>;
    /// The paths of the scripts that locations speak of.
    fn script_paths(&self) -> ScriptPaths;
    /// Whether the node is of a document that it no longer hangs in.
    fn is_detached(&self, node: u32) -> bool;
    /// Whether V8 was asked to show its own objects: such snapshots do not compare with others.
    fn shows_internals(&self) -> bool;

    /// The node's name.
    fn name(&self, node: u32) -> Cow<'_, str> {
        self.string(self.name_index(node))
    }

    /// What the edge is called.
    fn edge_name(&self, edge: u32) -> EdgeName<'_> {
        let index = self.edge_name_index(edge);
        match self.edge_kind(edge) {
            EdgeKind::ELEMENT | EdgeKind::HIDDEN => EdgeName::Index(index),
            _ => EdgeName::Name(self.string(index)),
        }
    }

    /// The name under which DevTools lists the node, without inferred interfaces.
    fn class_name(&self, node: u32) -> Cow<'_, str> {
        match self.kind(node) {
            NodeKind::OBJECT | NodeKind::NATIVE | NodeKind::WASM_OBJECT => self.name(node),
            kind => Cow::Borrowed(group_name(kind)),
        }
    }
}

impl HeapView for devtools::Heap {
    fn graph(&self) -> &Graph {
        self.snapshot().graph()
    }

    fn retainers(&self) -> &Retainers {
        self.retainers()
    }

    fn dominators(&self) -> &Dominators {
        self.dominators()
    }

    fn retained_bytes(&self, node: u32) -> u64 {
        self.retained()[node as usize]
    }

    fn self_bytes(&self, node: u32) -> u64 {
        self.snapshot().self_bytes(node)
    }

    fn id(&self, node: u32) -> u64 {
        self.snapshot().id(node)
    }

    fn kind(&self, node: u32) -> NodeKind {
        self.snapshot().kind(node)
    }

    fn name_index(&self, node: u32) -> u32 {
        self.snapshot().name_number(node)
    }

    fn string_count(&self) -> u32 {
        self.snapshot().strings().count()
    }

    fn string(&self, index: u32) -> Cow<'_, str> {
        self.snapshot().strings().text(index)
    }

    fn edge_kind(&self, edge: u32) -> EdgeKind {
        self.snapshot().edge_kind(edge)
    }

    fn edge_name_index(&self, edge: u32) -> u32 {
        self.snapshot().edge_name_number(edge)
    }

    fn distance(&self, node: u32) -> u32 {
        u32::try_from(self.distances()[node as usize]).unwrap_or(u32::MAX)
    }

    fn location(&self, node: u32) -> Option<Location> {
        self.snapshot().locations().of(node)
    }

    fn script_paths(&self) -> ScriptPaths {
        ScriptPaths::of(self.snapshot())
    }

    fn is_detached(&self, node: u32) -> bool {
        self.snapshot().dom_state(node) == DomState::Detached
    }

    fn shows_internals(&self) -> bool {
        self.mode() == devtools::CaptureMode::ExposeInternals
    }
}

/// The target of the first field with one of these names.
pub(super) fn field(heap: &impl HeapView, node: u32, names: &[&str]) -> Option<u32> {
    heap.graph().edges(node).find_map(|edge| match heap.edge_name(edge) {
        EdgeName::Name(name) if names.contains(&name.as_ref()) => Some(heap.graph().target(edge)),
        _ => None,
    })
}
