//! What the analyses need to know of a snapshot.

use std::borrow::Cow;

use heapr_graph::{Dominators, Graph, Retainers};

/// What a node is, as the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Internal to the engine: maps, descriptors, reactions, cells.
    Hidden,
    /// The backing store of an object: elements, properties, tables.
    Array,
    /// A flat string.
    String,
    /// An object of the program or of the runtime's libraries.
    Object,
    /// Compiled code, byte code, feedback.
    Code,
    /// A function.
    Closure,
    /// A regular expression.
    RegExp,
    /// A number that has its own memory.
    Number,
    /// Memory of the embedder (Node, Blink).
    Native,
    /// Made by the profiler: roots and groups.
    Synthetic,
    /// Two strings that were put together, not yet flattened.
    ConsString,
    /// A part of another string.
    SlicedString,
    /// A symbol.
    Symbol,
    /// A big integer.
    BigInt,
    /// A hidden class.
    ObjectShape,
    /// Anything else, of this or a later format.
    Other,
}

impl Kind {
    /// Flat, concatenated or sliced string.
    pub fn is_string(self) -> bool {
        matches!(self, Self::String | Self::ConsString | Self::SlicedString)
    }

    /// What a class name is made of when the node has no name of its own.
    pub fn group_name(self) -> &'static str {
        match self {
            Self::Hidden => "(system)",
            Self::Array => "(array)",
            Self::String => "(string)",
            Self::Code => "(compiled code)",
            Self::Closure => "Function",
            Self::RegExp => "RegExp",
            Self::Number => "(number)",
            Self::Synthetic => "(synthetic)",
            Self::ConsString => "(concatenated string)",
            Self::SlicedString => "(sliced string)",
            Self::Symbol => "(symbol)",
            Self::BigInt => "(bigint)",
            Self::ObjectShape => "(object shape)",
            Self::Object | Self::Native | Self::Other => "(other)",
        }
    }
}

/// How one node refers to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// A variable of a function's context.
    Context,
    /// An element by index.
    Element,
    /// A named property.
    Property,
    /// A named field of the engine.
    Internal,
    /// A numbered field of the engine.
    Hidden,
    /// Made by the profiler.
    Shortcut,
    /// Does not keep its target alive.
    Weak,
    /// Anything else.
    Other,
}

/// What an edge is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EdgeName<'a> {
    /// Elements and hidden fields have a number.
    Index(u32),
    /// All others have a name.
    Name(Cow<'a, str>),
}

/// Where a function, or the constructor of an object, stands in its script; line and column count from 0 as in the
/// file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// The script's number in the isolate.
    pub script_id: u32,
    /// Line, from 0.
    pub line: u32,
    /// Column, from 0.
    pub column: u32,
}

/// An opened snapshot with what was computed over it.
pub trait Heap {
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
    fn kind(&self, node: u32) -> Kind;
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
    /// All locations with their nodes.
    fn locations(&self) -> Box<dyn Iterator<Item = (u32, Location)> + '_>;
    /// Whether the node is of a document that it no longer hangs in.
    fn is_detached(&self, node: u32) -> bool;

    /// The node's name.
    fn name(&self, node: u32) -> Cow<'_, str> {
        self.string(self.name_index(node))
    }

    /// What the edge is called.
    fn edge_name(&self, edge: u32) -> EdgeName<'_> {
        let index = self.edge_name_index(edge);
        match self.edge_kind(edge) {
            EdgeKind::Element | EdgeKind::Hidden => EdgeName::Index(index),
            _ => EdgeName::Name(self.string(index)),
        }
    }

    /// The name under which DevTools lists the node, without inferred interfaces.
    fn class_name(&self, node: u32) -> Cow<'_, str> {
        match self.kind(node) {
            Kind::Object | Kind::Native | Kind::Other => self.name(node),
            kind => Cow::Borrowed(kind.group_name()),
        }
    }
}
