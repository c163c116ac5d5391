//! The graph of a managed heap.

use std::collections::{BTreeMap, BTreeSet};

use heapr_known::machine::HERE;
use rustc_hash::FxHashMap;

use crate::allocation_stacks::{AllocationStacks, CallText};
use crate::own_slots::OwnSlots;
use crate::strings::Strings;

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
    /// Contents that belong to another object, such as the variables of a block of code.
    Store,
    /// Code and caches of the runtime.
    Code,
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

/// Number of bits of an id in a file: the page and DevTools have numbers of 53 bits.
const ID_BITS: u32 = 53;
/// First bit of an id that belongs to no address.
pub(crate) const IDENTITY_BIT: u32 = HERE.address_limit.trailing_zeros();
/// Number of identities besides 0: those that the bits of an id above the address can tell.
pub(crate) const IDENTITIES: u8 = ((1_u32 << (ID_BITS - IDENTITY_BIT)) - 1) as u8;

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

/// Kind, name and location of nodes; all instances of a class have the same label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Label {
    /// Index of the name among the strings: the class, or what the object is called.
    pub name: u32,
    /// Kind.
    pub kind: NodeKind,
    /// Index of the source location plus 1; 0 without one.
    pub place: u32,
    /// Number of the class, from 1, as its reader counts; 0 of native memory.
    pub(crate) class: u32,
}

/// An object, or a block of native memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Node {
    /// Address.
    pub address_avma: u64,
    /// Bytes of its own; [`ManagedHeap::own_bytes`] has those of 4 GiB or more.
    own_bytes: u32,
    /// Index of its label.
    label: u32,
}

impl Node {
    /// Node without bytes of its own.
    pub(crate) fn new(address_avma: u64, label: u32) -> Self {
        Self { address_avma, own_bytes: 0, label }
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

/// Memory in which the runtime itself has its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuntimePage {
    /// Address of its first byte.
    pub start_avma: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Bytes of it that no object has.
    pub free_bytes: u64,
}

impl RuntimePage {
    /// True if the page has the byte at an address.
    #[must_use]
    pub fn has(&self, avma: u64) -> bool {
        avma.checked_sub(self.start_avma).is_some_and(|offset| offset < self.bytes)
    }
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
    /// References of what the program owns for good: its modules, classes, global variables.
    Owner,
    /// Part of the program that passes: a thread, a running frame.
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
    /// Name of the language, as analyses know it; empty for Python.
    pub language: &'static str,
    /// Names of classes of the program, where they are told by their names.
    pub program: BTreeSet<String>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Labels of nodes.
    pub(crate) labels: Labels,
    /// Bytes by which the allocator rounds the sizes of objects and their parts up.
    pub rounding_bytes: u64,
    /// Pages of the runtime, by address. Empty where its pools are known without its objects.
    pub runtime_pages: Vec<RuntimePage>,
    /// Own size in bytes of each node of 4 GiB or more.
    pub large: FxHashMap<u32, u64>,
    /// Bits of the contents of nodes that never change; 0, and missing at the end, where they may.
    pub(crate) identities: Vec<u8>,
    /// First edge of each node, and the number of edges.
    pub first_edges: Vec<u32>,
    /// Edges by node.
    pub edges: Vec<Edge>,
    /// Stacks that allocated nodes.
    pub(crate) stacks: AllocationStacks,
    /// Roots.
    pub roots: Vec<Root>,
    /// Source locations.
    pub places: Vec<Place>,
    /// Texts without duplicates.
    pub strings: Strings,
    /// Names of classes whose instances hold their contents by position or key.
    pub collections: Vec<u32>,
    /// Layouts of collections by the name of the class; `None` of classes of one name that differ.
    pub(crate) own_slots: BTreeMap<u32, Option<OwnSlots>>,
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

    /// Edges of a node, to be changed.
    pub(crate) fn edges_of_mut(&mut self, node: u32) -> &mut [Edge] {
        let all = self.edges.len();
        let at = |index: usize| self.first_edges.get(index).map_or(all, |&edge| edge as usize);
        let range = at(node as usize)..at(node as usize + 1);
        self.edges.get_mut(range).unwrap_or_default()
    }

    /// Inserts edges of any nodes, which are sorted by these.
    pub(crate) fn insert_edges(&mut self, new: &mut [(u32, Edge)]) {
        let (Some(&(_, any)), old_count) = (new.first(), self.edges.len()) else { return };
        new.sort_by_key(|&(node, _)| node);
        self.edges.resize(old_count + new.len(), any);
        // From the back, so that each edge moves once.
        let (mut left, mut end) = (new.len(), old_count);
        for node in (0..self.first_edges.len().saturating_sub(1)).rev() {
            self.first_edges[node + 1] = (end + left) as u32;
            while let Some(&(_, edge)) =
                left.checked_sub(1).map(|last| &new[last]).filter(|it| it.0 as usize == node)
            {
                left -= 1;
                self.edges[end + left] = edge;
            }
            if left == 0 {
                return;
            }
            let start = self.first_edges[node] as usize;
            self.edges.copy_within(start..end, start + left);
            end = start;
        }
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

    /// Bits of the contents of a node that never change, up to [`IDENTITIES`]; 0 where they may.
    #[must_use]
    pub fn identity(&self, node: u32) -> u8 {
        self.identities.get(node as usize).copied().unwrap_or(0)
    }

    /// Sets the identity of a node.
    pub(crate) fn set_identity(&mut self, node: u32, identity: u8) {
        if identity > 0 {
            let count = self.identities.len().max(node as usize + 1);
            self.identities.resize(count, 0);
            self.identities[node as usize] = identity;
        }
    }

    /// Kind, name and location of a node.
    #[must_use]
    pub fn label_of(&self, node: &Node) -> Label {
        self.labels.all.get(node.label as usize).copied().unwrap_or_default()
    }

    /// Name of a node.
    #[must_use]
    pub fn name_of(&self, node: &Node) -> &str {
        self.strings.get(self.label_of(node).name)
    }

    /// Returns the index of a label, which is added if it is new.
    pub(crate) fn label(&mut self, label: Label) -> u32 {
        self.labels.number(label)
    }

    /// Number of a stack for [`Self::set_stack`], from 1. The outermost call is given first.
    pub fn stack<'a>(&mut self, calls: impl IntoIterator<Item = CallText<'a>>) -> u32 {
        self.stacks.stack(calls, &mut self.strings)
    }

    /// Sets the stack that allocated a node. `stack`: a number from [`Self::stack`].
    pub fn set_stack(&mut self, node: u32, stack: u32) {
        self.stacks.set(node, stack);
    }

    /// Number of nodes with the stack that allocated them.
    #[must_use]
    pub fn stack_count(&self) -> usize {
        self.stacks.node_count()
    }

    /// Changes the label of a node.
    pub(crate) fn relabel(&mut self, node: u32, change: impl FnOnce(&mut Label)) {
        let Some(facts) = self.nodes.get_mut(node as usize) else { return };
        let mut label = self.labels.all.get(facts.label as usize).copied().unwrap_or_default();
        change(&mut label);
        facts.label = self.labels.number(label);
    }
}

/// Labels without duplicates.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    numbers: FxHashMap<Label, u32>,
    all: Vec<Label>,
}

impl Labels {
    fn number(&mut self, label: Label) -> u32 {
        *self.numbers.entry(label).or_insert_with(|| {
            self.all.push(label);
            self.all.len() as u32 - 1
        })
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
        assert_eq!(size_of::<Node>(), 16);
    }

    #[test]
    fn edges_are_inserted_behind_those_of_their_nodes() {
        let edge = |target: u32| Edge { target, name: EdgeName::item(target.into()) };
        let mut heap = ManagedHeap {
            nodes: vec![Node::default(); 4],
            edges: [1, 2, 3, 4].map(edge).to_vec(),
            first_edges: vec![0, 2, 2, 3, 4],
            ..ManagedHeap::default()
        };
        heap.insert_edges(&mut [(3, edge(30)), (1, edge(10)), (3, edge(31)), (0, edge(5))]);
        let of = |node: u32| heap.edges_of(node).iter().map(|edge| edge.target).collect::<Vec<_>>();
        assert_eq!([of(0), of(1), of(2), of(3)], [vec![1, 2, 5], vec![10], vec![3], vec![4, 30, 31]]);
        assert_eq!(heap.edges.len(), 8);
        heap.insert_edges(&mut []);
        assert_eq!(heap.first_edges, [0, 3, 4, 5, 8]);
    }

    #[test]
    fn a_node_is_relabelled_alone() {
        let mut heap = ManagedHeap::default();
        let name = heap.strings.number("app.Thing");
        let label = heap.label(Label { name, ..Label::default() });
        heap.nodes = (0..3).map(|number| Node::new(number * 16, label)).collect();
        let text = heap.strings.number("hello");
        for node in [0, 2] {
            heap.relabel(node, |label| {
                label.name = text;
                label.kind = NodeKind::Text;
            });
        }
        let names: Vec<&str> = heap.nodes.iter().map(|node| heap.name_of(node)).collect();
        assert_eq!(names, ["hello", "app.Thing", "hello"]);
        let kinds: Vec<NodeKind> = heap.nodes.iter().map(|node| heap.label_of(node).kind).collect();
        assert_eq!(kinds, [NodeKind::Text, NodeKind::Object, NodeKind::Text]);
    }
}
