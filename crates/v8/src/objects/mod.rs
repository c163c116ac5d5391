//! What is known of each object, one question at a time: the same of a snapshot in memory and of
//! one in an index file.

use std::borrow::Cow;
use std::ops::Range;

mod capture_mode;
mod class;
mod names;
mod node_facts;
mod page;
mod script_paths;

use crate::{DomState, EdgeKind, Location, Meta, NodeKind};

pub use capture_mode::CaptureMode;
pub use class::{Class, ConstructorPlace};
pub use names::EdgeName;
pub(crate) use names::group_name;
pub use node_facts::{NodeFacts, NodeNumber};
pub use page::{ObjectOrder, Page};
pub use script_paths::ScriptPaths;

/// Whether a native object of that name is one of Node's own.
fn is_of_node(name: &[u8]) -> bool {
    name.strip_prefix(b"Detached ").unwrap_or(name).starts_with(b"Node / ")
}

/// The objects of a snapshot, with DevTools' numbers. Nodes and edges are numbered from 0 on.
///
/// A number that is too large for its kind gives an empty answer or zero in an index file and
/// panics in memory; numbers that these methods gave are never too large.
pub trait Objects: Send + Sync {
    /// How many nodes there are.
    fn node_count(&self) -> u32;
    /// How many edges there are.
    fn edge_count(&self) -> u32;
    /// The node that everything hangs from.
    fn root(&self) -> u32;
    /// What the file says about itself: names of kinds.
    fn meta(&self) -> &Meta;
    /// How the snapshot was taken.
    fn capture_mode(&self) -> CaptureMode;

    /// What the node is.
    fn kind(&self, node: u32) -> NodeKind;
    /// Whether the node hangs in a document.
    fn dom_state(&self, node: u32) -> DomState;
    /// The number of the node's name among the strings.
    fn name_index(&self, node: u32) -> u32;
    /// The number that the node keeps in all snapshots of its isolate.
    fn id(&self, node: u32) -> u64;
    /// The first node with that id.
    fn node_of_id(&self, id: u64) -> Option<u32>;
    /// The node's own size.
    fn self_bytes(&self, node: u32) -> u64;
    /// What would be freed with the node.
    fn retained_bytes(&self, node: u32) -> u64;
    /// DevTools' distance: see [`crate::devtools::BASE_SYSTEM_DISTANCE`] and
    /// [`crate::devtools::NO_DISTANCE`].
    fn devtools_distance(&self, node: u32) -> i32;
    /// The number of the node's class in [`Self::class_list`].
    fn class_of(&self, node: u32) -> u32;
    /// The nearest node that alone keeps this one alive; the root's is itself.
    fn dominator(&self, node: u32) -> u32;
    /// How many nodes the node keeps alive, itself included.
    fn dominated_count(&self, node: u32) -> u32;
    /// The nodes whose dominator it is, in no order.
    fn dominated_by(&self, node: u32) -> Cow<'_, [u32]>;
    /// How many they are.
    fn dominated_by_count(&self, node: u32) -> u32 {
        self.dominated_by(node).len() as u32
    }
    /// The node of the allocation trace that made the object; 0 if there is none.
    fn trace_node_id(&self, node: u32) -> u32;
    /// Where the function, or the object's constructor, stands.
    fn location(&self, node: u32) -> Option<Location>;

    /// The edges that go out of the node.
    fn edges(&self, node: u32) -> Range<u32>;
    /// The node that an edge goes to.
    fn target(&self, edge: u32) -> u32;
    /// The nodes that some edges go to.
    fn targets(&self, edges: Range<u32>) -> Vec<u32> {
        edges.map(|edge| self.target(edge)).collect()
    }
    /// The node that an edge comes from.
    fn source(&self, edge: u32) -> u32;
    /// How an edge refers.
    fn edge_kind(&self, edge: u32) -> EdgeKind;
    /// The edge's index, or the number of its name among the strings.
    fn edge_name_index(&self, edge: u32) -> u32;
    /// The edges that go to the node, in descending order; the first `most` of them.
    fn edges_into(&self, node: u32, most: usize) -> Cow<'_, [u32]>;

    /// The node that each edge comes from, and the edge's kind; the edges descend.
    fn holders(&self, edges: &[u32]) -> Vec<(u32, EdgeKind)> {
        edges.iter().map(|&edge| (self.source(edge), self.edge_kind(edge))).collect()
    }

    /// The index of each edge, or the number of its name; the edges descend.
    fn edge_name_indexes(&self, edges: &[u32]) -> Vec<u32> {
        edges.iter().map(|&edge| self.edge_name_index(edge)).collect()
    }

    /// A page of the retainers of a node that very many edges go to, and how many they are, where
    /// their order is kept.
    fn retainers_in_order(&self, _node: u32, _page: Page) -> Option<(Vec<u32>, usize)> {
        None
    }

    /// Plain objects among some nodes, and the number of the list of properties that each has,
    /// ascending by node; nothing where nobody knows without looking at each.
    fn known_shapes(&self, _nodes: Range<u32>) -> Option<Vec<(u32, u32)>> {
        None
    }

    /// Where the nodes of a class are among all by class ([`Self::nodes_by_class`]): those with
    /// bytes of their own, then those without; in each part most retained bytes first, of
    /// equals the first node. Nothing where nobody knows without looking at each node.
    fn class_rows(&self, _class: u32) -> Option<[Range<u32>; 2]> {
        None
    }

    /// Some of the nodes by class.
    fn nodes_by_class(&self, _rows: Range<u32>) -> Vec<u32> {
        Vec::new()
    }

    /// The first or the last [`crate::index::END_ROWS`] of the nodes of a class that have bytes of
    /// their own, as a list in that order has them; nothing where nobody knows without looking
    /// at all of them.
    fn class_end(&self, _class: u32, _order: ObjectOrder, _is_start: bool) -> Option<Vec<u32>> {
        None
    }

    /// A number of each of some nodes.
    fn numbers_of(&self, number: NodeNumber, nodes: &[u32]) -> Vec<u64> {
        nodes
            .iter()
            .map(|&node| match number {
                NodeNumber::Id => self.id(node),
                NodeNumber::SelfBytes => self.self_bytes(node),
                NodeNumber::RetainedBytes => self.retained_bytes(node),
                NodeNumber::NameIndex => self.name_index(node).into(),
                NodeNumber::Kind => self.kind(node).number().into(),
                NodeNumber::Distance => NodeNumber::of_distance(self.devtools_distance(node)),
            })
            .collect()
    }

    /// How many strings there are.
    fn string_count(&self) -> u32;
    /// A string of the file, WTF-8; empty if there is none of that number.
    fn string_bytes(&self, index: u32) -> Cow<'_, [u8]>;
    /// Shows some strings to `visit`, in ascending order.
    fn visit_strings(&self, numbers: Range<u32>, visit: &mut dyn FnMut(u32, &[u8]));
    /// The classes.
    fn class_list(&self) -> &[Class];
    /// Shows some nodes to `visit`, in ascending order: much faster than to ask for each.
    fn visit_nodes(&self, nodes: Range<u32>, visit: &mut dyn FnMut(NodeFacts));
    /// Shows the edges of some nodes to `visit`: node, kind, index or number of the name; in
    /// ascending order.
    fn visit_edges(&self, nodes: Range<u32>, visit: &mut dyn FnMut(u32, EdgeKind, u32));
    /// The paths of the scripts that locations speak of.
    fn script_paths(&self) -> ScriptPaths;

    /// What went wrong while an index file was read; answers given since then may be empty.
    fn damage(&self) -> Option<String> {
        None
    }

    /// A string of the file, to show.
    fn string(&self, index: u32) -> Cow<'_, str> {
        match self.string_bytes(index) {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The node's name.
    fn name(&self, node: u32) -> Cow<'_, str> {
        self.string(self.name_index(node))
    }

    /// The distance from the roots; `u32::MAX` if it has none.
    fn distance(&self, node: u32) -> u32 {
        u32::try_from(self.devtools_distance(node)).unwrap_or(u32::MAX)
    }

    /// Whether the node is of a document that it no longer hangs in. Node marks objects of its own
    /// likewise, which are in no document.
    fn is_detached(&self, node: u32) -> bool {
        self.dom_state(node) == DomState::Detached && !is_of_node(&self.string_bytes(self.name_index(node)))
    }

    /// Whether V8 was asked to show its own objects: such snapshots do not compare with others.
    fn shows_internals(&self) -> bool {
        self.capture_mode() == CaptureMode::ExposeInternals
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
            // A kind that only this file knows.
            kind if kind > NodeKind::WASM_OBJECT => {
                Cow::Owned(format!("({})", self.meta().node_kind_name(kind)))
            }
            kind => Cow::Borrowed(group_name(kind)),
        }
    }
}
