//! The graph of a managed heap.

use rustc_hash::FxHashMap;

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NodeKind {
    /// An object.
    #[default]
    Object,
    /// A function.
    Function,
    /// A text whose contents are the node's name.
    Text,
    /// Native memory that an object holds.
    Block,
}

/// Kind of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeKind {
    /// An attribute, or a key that is shown.
    Attribute,
    /// A variable of a function or a call.
    Variable,
    /// An item by its position.
    Item,
    /// A field of the runtime.
    Internal,
    /// A reference that holds nothing.
    Weak,
}

/// Largest number of an item's position; later positions have this number.
const POSITION_MAX: u32 = (1 << 29) - 1;

/// Name of a reference: its kind, and the index of a text or a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EdgeName(u32);

impl EdgeName {
    /// Name with the index of a text.
    pub(crate) fn text(kind: EdgeKind, text: u32) -> Self {
        Self((kind as u32) << 29 | text.min(POSITION_MAX))
    }

    /// Position in a collection.
    pub(crate) fn item(position: u64) -> Self {
        Self((EdgeKind::Item as u32) << 29 | position.min(POSITION_MAX.into()) as u32)
    }

    /// Kind of the reference.
    #[must_use]
    pub fn kind(self) -> EdgeKind {
        match self.0 >> 29 {
            0 => EdgeKind::Attribute,
            1 => EdgeKind::Variable,
            2 => EdgeKind::Item,
            3 => EdgeKind::Internal,
            _ => EdgeKind::Weak,
        }
    }

    /// Index of the text, or the position of an item.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0 & POSITION_MAX
    }
}

/// An object, or a block of native memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Node {
    /// Address.
    pub address_avma: u64,
    /// Bytes of its own.
    pub own_bytes: u64,
    /// Index of its name among the strings: the class, or what the object is called.
    pub name: u32,
    /// Kind.
    pub kind: NodeKind,
    /// Index of its source location plus 1; 0 without one.
    pub place: u32,
}

/// A reference of an object or a root.
#[derive(Debug, Clone, Copy)]
pub struct Edge {
    /// Index of the node.
    pub target: u32,
    /// Name.
    pub name: EdgeName,
}

/// Kind of a root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// Part of the program: its modules, a thread, a running frame.
    Program,
    /// The runtime's own references.
    Runtime,
    /// Objects without any reference from outside of them.
    Garbage,
}

/// A group of references from outside of the heap.
#[derive(Debug, Clone)]
pub struct Root {
    /// Name: `(modules)`, `thread 1`, `frame main (app.py:9)`.
    pub name: String,
    /// Kind.
    pub kind: RootKind,
    /// Index of the source location plus 1; 0 without one.
    pub place: u32,
    /// References.
    pub edges: Vec<Edge>,
}

/// A source location: index of the file among the strings, and line from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index of the file's path among the strings.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
}

/// Heap of a managed language as a graph.
#[derive(Debug, Default)]
pub struct ManagedHeap {
    /// Runtime and version: `CPython 3.11.2`.
    pub runtime: String,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// First edge of each node, and the number of edges.
    pub first_edges: Vec<u32>,
    /// Edges by node.
    pub edges: Vec<Edge>,
    /// Roots.
    pub roots: Vec<Root>,
    /// Source locations.
    pub places: Vec<Place>,
    /// Texts without duplicates.
    pub strings: Strings,
    /// Names of classes whose instances hold their contents by position or key.
    pub collections: Vec<u32>,
    /// Names of classes whose instances never change their size.
    pub fixed: Vec<u32>,
    /// Facts on the heap that a reader should know.
    pub notes: Vec<String>,
}

impl ManagedHeap {
    /// Edges of a node.
    #[must_use]
    pub fn edges_of(&self, node: u32) -> &[Edge] {
        let at = |index: usize| self.first_edges.get(index).map_or(self.edges.len(), |&edge| edge as usize);
        self.edges.get(at(node as usize)..at(node as usize + 1)).unwrap_or_default()
    }

    /// Name of a node.
    #[must_use]
    pub fn name_of(&self, node: &Node) -> &str {
        self.strings.get(node.name)
    }
}

/// Texts without duplicates.
#[derive(Debug, Default)]
pub struct Strings {
    numbers: FxHashMap<String, u32>,
    texts: Vec<String>,
}

impl Strings {
    /// Returns the index of a text, which is added if it is new.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    /// Text of an index; empty if the index is unknown.
    #[must_use]
    pub fn get(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }

    /// All texts, by index.
    #[must_use]
    pub fn all(&self) -> &[String] {
        &self.texts
    }
}
