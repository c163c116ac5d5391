//! Common interface to objects of a snapshot in memory and of one in an index file, one fact at a
//! time.

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
pub use node_facts::{NodeFacts, NodeNumber};
pub use page::{ObjectOrder, Page};
pub use script_paths::ScriptPaths;

/// Whether a native object of that name is one of Node's own.
fn is_of_node(name: &[u8]) -> bool {
    name.strip_prefix(b"Detached ").unwrap_or(name).starts_with(b"Node / ")
}

/// Objects of a snapshot, with DevTools' numbers. Nodes and edges are numbered from 0.
///
/// Numbers returned by these methods are valid arguments. A number that is too large gives an empty
/// result or zero in an index file, and panics in memory.
pub trait Objects: Send + Sync {
    /// Number of nodes.
    fn node_count(&self) -> u32;
    /// Number of edges.
    fn edge_count(&self) -> u32;
    /// Root node.
    fn root(&self) -> u32;
    /// Description in the snapshot file, with the names of kinds.
    fn meta(&self) -> &Meta;
    /// Capture mode of the snapshot.
    fn capture_mode(&self) -> CaptureMode;

    /// Kind of a node.
    fn kind(&self, node: u32) -> NodeKind;
    /// State of a DOM node: attached to its document, detached or unknown.
    fn dom_state(&self, node: u32) -> DomState;
    /// String number of a node's name.
    fn name_index(&self, node: u32) -> u32;
    /// Id of a node, which stays the same in all snapshots of an isolate.
    fn id(&self, node: u32) -> u64;
    /// Returns the first node with that id.
    fn node_of_id(&self, id: u64) -> Option<u32>;
    /// Self size of a node, in bytes.
    fn self_bytes(&self, node: u32) -> u64;
    /// Bytes that would be freed with a node.
    fn retained_bytes(&self, node: u32) -> u64;
    /// DevTools' distance; see [`crate::devtools::BASE_SYSTEM_DISTANCE`]. -5 marks an unreachable
    /// node.
    fn devtools_distance(&self, node: u32) -> i32;
    /// Number of a node's class in [`Self::class_list`].
    fn class_of(&self, node: u32) -> u32;
    /// Immediate dominator of a node; the root is its own.
    fn dominator(&self, node: u32) -> u32;
    /// Number of nodes that a node dominates, itself included.
    fn dominated_count(&self, node: u32) -> u32;
    /// Returns the nodes that a node immediately dominates, in unspecified order.
    fn dominated_by(&self, node: u32) -> Cow<'_, [u32]>;
    /// Number of nodes that a node immediately dominates.
    fn dominated_by_count(&self, node: u32) -> u32 {
        self.dominated_by(node).len() as u32
    }
    /// Id of the allocation trace's node in which the object was allocated; 0 if unknown.
    fn trace_node_id(&self, node: u32) -> u32;
    /// Source location of a function, or of an object's constructor.
    fn location(&self, node: u32) -> Option<Location>;

    /// Outgoing edges of a node.
    fn edges(&self, node: u32) -> Range<u32>;
    /// Target of an edge.
    fn target(&self, edge: u32) -> u32;
    /// Returns the targets of some edges.
    fn targets(&self, edges: Range<u32>) -> Vec<u32> {
        edges.map(|edge| self.target(edge)).collect()
    }
    /// Source of an edge.
    fn source(&self, edge: u32) -> u32;
    /// Kind of an edge.
    fn edge_kind(&self, edge: u32) -> EdgeKind;
    /// Index of an edge, or the string number of its name.
    fn edge_name_index(&self, edge: u32) -> u32;
    /// Returns the edges into a node in descending order, at most `most`.
    fn edges_into(&self, node: u32, most: usize) -> Cow<'_, [u32]>;

    /// Returns the source and kind of each edge. The edges must be in descending order.
    fn holders(&self, edges: &[u32]) -> Vec<(u32, EdgeKind)> {
        edges.iter().map(|&edge| (self.source(edge), self.edge_kind(edge))).collect()
    }

    /// Returns the index of each edge, or the string number of its name. The edges must be in
    /// descending order.
    fn edge_name_indexes(&self, edges: &[u32]) -> Vec<u32> {
        edges.iter().map(|&edge| self.edge_name_index(edge)).collect()
    }

    /// Returns a page of a node's retainers and their number, if their order is stored because of
    /// their number.
    fn retainers_in_order(&self, _node: u32, _page: Page) -> Option<(Vec<u32>, usize)> {
        None
    }

    /// Returns the plain objects among some nodes with the numbers of their lists of properties,
    /// ascending by node. `None` if that would require examining each node.
    fn known_shapes(&self, _nodes: Range<u32>) -> Option<Vec<(u32, u32)>> {
        None
    }

    /// Returns the ranges of a class in [`Self::nodes_by_class`]: its nodes with a self size above
    /// 0, then those of size 0. Each range is sorted by descending retained bytes, then by node.
    /// `None` if that would require examining each node.
    fn class_rows(&self, _class: u32) -> Option<[Range<u32>; 2]> {
        None
    }

    /// Returns some of the nodes in the order by class.
    fn nodes_by_class(&self, _rows: Range<u32>) -> Vec<u32> {
        Vec::new()
    }

    /// Returns the first or the last [`crate::index::END_ROWS`] nodes of a class whose self size is
    /// above 0, in the given order. `None` if that would require examining all of them.
    fn class_end(&self, _class: u32, _order: ObjectOrder, _is_start: bool) -> Option<Vec<u32>> {
        None
    }

    /// Returns a number for each of some nodes.
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

    /// Number of strings.
    fn string_count(&self) -> u32;
    /// String of the file, WTF-8; empty if the number is too large.
    fn string_bytes(&self, index: u32) -> Cow<'_, [u8]>;
    /// Calls `visit` for some strings, in ascending order.
    fn visit_strings(&self, numbers: Range<u32>, visit: &mut dyn FnMut(u32, &[u8]));
    /// Classes of the snapshot.
    fn class_list(&self) -> &[Class];
    /// Calls `visit` for some nodes, in ascending order. This is much faster than single queries.
    fn visit_nodes(&self, nodes: Range<u32>, visit: &mut dyn FnMut(NodeFacts));
    /// Calls `visit` for the edges of some nodes, in ascending order, with node, kind, and index or
    /// string number of the name.
    fn visit_edges(&self, nodes: Range<u32>, visit: &mut dyn FnMut(u32, EdgeKind, u32));
    /// Paths of the scripts that locations refer to.
    fn script_paths(&self) -> ScriptPaths;

    /// Description of a failure in reading an index file; later results may be empty.
    fn damage(&self) -> Option<String> {
        None
    }

    /// String of the file as a `str`, invalid parts replaced.
    fn string(&self, index: u32) -> Cow<'_, str> {
        match self.string_bytes(index) {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Name of a node.
    fn name(&self, node: u32) -> Cow<'_, str> {
        self.string(self.name_index(node))
    }

    /// Distance from the roots; `u32::MAX` if the node is unreachable.
    fn distance(&self, node: u32) -> u32 {
        u32::try_from(self.devtools_distance(node)).unwrap_or(u32::MAX)
    }

    /// Whether a node is detached from its document. Node marks objects of its own likewise, which
    /// are not DOM nodes.
    fn is_detached(&self, node: u32) -> bool {
        self.dom_state(node) == DomState::Detached && !is_of_node(&self.string_bytes(self.name_index(node)))
    }

    /// Whether the snapshot shows V8's internal objects. Such a snapshot cannot be compared with
    /// one that hides them.
    fn shows_internals(&self) -> bool {
        self.capture_mode() == CaptureMode::ExposeInternals
    }

    /// Name of an edge.
    fn edge_name(&self, edge: u32) -> EdgeName<'_> {
        let index = self.edge_name_index(edge);
        match self.edge_kind(edge) {
            EdgeKind::ELEMENT | EdgeKind::HIDDEN => EdgeName::Index(index),
            _ => EdgeName::Name(self.string(index)),
        }
    }

    /// Class name under which DevTools lists a node, without inferred interfaces.
    fn class_name(&self, node: u32) -> Cow<'_, str> {
        match self.kind(node) {
            // Kind that only this file has.
            kind if kind > NodeKind::WASM_OBJECT => {
                Cow::Owned(format!("({})", self.meta().node_kind_name(kind)))
            }
            kind => match self.meta().language().class_of_kind(kind) {
                Some(class) => Cow::Borrowed(class),
                None => self.name(node),
            },
        }
    }
}
