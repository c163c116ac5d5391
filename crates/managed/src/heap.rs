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

/// Own size of a node whose size is in [`ManagedHeap::large`].
const LARGE: u32 = u32::MAX;

/// An object, or a block of native memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Node {
    /// Address.
    pub address_avma: u64,
    /// Bytes of its own; [`ManagedHeap::own_bytes`] has those of 4 GiB or more.
    own_bytes: u32,
    /// Index of its name among the strings: the class, or what the object is called.
    pub name: u32,
    /// Kind.
    pub kind: NodeKind,
    /// Index of its source location plus 1; 0 without one.
    pub place: u32,
}

impl Node {
    /// Node without bytes of its own.
    pub(crate) fn new(address_avma: u64, kind: NodeKind, name: u32, place: u32) -> Self {
        Self { address_avma, own_bytes: 0, name, place, kind }
    }
}

/// A block of the C library's heap that the program holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NativeBlock {
    /// Address that malloc returned.
    pub address_avma: u64,
    /// Usable size in bytes.
    pub usable_bytes: u64,
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
    /// Own size in bytes of each node of 4 GiB or more.
    pub large: FxHashMap<u32, u64>,
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

    /// Own size in bytes of a node; 0 of an unknown one.
    #[must_use]
    pub fn own_bytes(&self, node: u32) -> u64 {
        match self.nodes.get(node as usize).map_or(0, |facts| facts.own_bytes) {
            LARGE => self.large.get(&node).copied().unwrap_or(LARGE.into()),
            bytes => bytes.into(),
        }
    }

    /// Own size in bytes of all nodes.
    #[must_use]
    pub fn all_own_bytes(&self) -> u64 {
        (0..self.nodes.len() as u32).map(|node| self.own_bytes(node)).fold(0, u64::saturating_add)
    }

    /// Sets the own size of a node.
    pub(crate) fn set_own_bytes(&mut self, node: u32, bytes: u64) {
        let Some(facts) = self.nodes.get_mut(node as usize) else { return };
        facts.own_bytes = u32::try_from(bytes).unwrap_or(LARGE);
        if facts.own_bytes == LARGE {
            self.large.insert(node, bytes);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_any_magnitude_are_those_that_were_set() {
        let mut heap = ManagedHeap { nodes: vec![Node::default(); 3], ..ManagedHeap::default() };
        let sizes = [0, u64::from(u32::MAX), 1 << 40];
        for (node, bytes) in sizes.into_iter().enumerate() {
            heap.set_own_bytes(node as u32, bytes);
        }
        assert_eq!([0, 1, 2].map(|node| heap.own_bytes(node)), sizes);
        assert_eq!(heap.all_own_bytes(), sizes.iter().sum::<u64>());
        assert_eq!(size_of::<Node>(), 24);
    }
}
