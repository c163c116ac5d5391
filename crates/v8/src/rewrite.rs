//! Derived snapshots: one without secrets, and one of a single object.

use std::io::{self, Write};

use heapr_graph::{DominatorTree, Dominators};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::data_keys::data_keys;
use crate::devtools::{keeps_alive, without_names};
use crate::format::writer::{Part, Rewriting};
use crate::kinds::{EdgeKind, NodeKind};
use crate::node_set::NodeSet;
use crate::{Snapshot, utf16_length};

/// Parts that are replaced in an anonymous snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// Texts: strings, symbols, regular expressions, numbers, attributes of DOM nodes, and keys
    /// that are data.
    Texts,
    /// Texts, and the names that the program gives: properties, variables, functions, classes,
    /// scripts.
    TextsAndNames,
}

impl Snapshot {
    /// Writes the snapshot with other texts of the same lengths. Equal texts stay equal; everything
    /// else is unchanged.
    pub fn write_anonymous(&self, secrecy: Secrecy, out: &mut impl Write) -> io::Result<()> {
        let names = Anonymous::of(self, secrecy);
        Part { snapshot: self, nodes: None, new_child: None }.write(&names, out)
    }

    /// Writes the snapshot as it is.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        Part { snapshot: self, nodes: None, new_child: None }.write(&Unchanged(self), out)
    }

    /// Writes a snapshot of the root, `node`, and all nodes that `node` dominates.
    pub fn write_retained_by(&self, node: u32, out: &mut impl Write) -> io::Result<()> {
        let dominators = Dominators::of(self.graph(), self.root(), keeps_alive(self));
        let tree = DominatorTree::of(&dominators);
        let mut nodes = NodeSet::new(self.node_count());
        for other in 0..self.node_count() {
            if tree.is_dominated_by(other, node) {
                nodes.insert(other);
            }
        }
        nodes.insert(self.root());
        let names = NeededNames::of(self, &nodes);
        let new_child = (node != self.root()).then_some(node);
        Part { snapshot: self, nodes: Some(&nodes), new_child }.write(&names, out)
    }
}

/// Snapshot with its own names.
struct Unchanged<'a>(&'a Snapshot);

impl Rewriting for Unchanged<'_> {
    fn node_name(&self, node: u32) -> u32 {
        self.0.name_number(node)
    }

    fn edge_name(&self, edge: u32) -> u32 {
        self.0.edge_name_number(edge)
    }

    fn string_count(&self) -> u32 {
        self.0.strings().count()
    }

    fn string(&self, number: u32) -> &[u8] {
        self.0.strings().get(number)
    }
}

/// Snapshot with secret texts replaced by numbered placeholders.
struct Anonymous<'a> {
    snapshot: &'a Snapshot,
    node_names: Vec<u32>,
    /// New number of each string that names an edge: for edges named by the engine, and for those
    /// named by the program.
    edge_names: [Vec<u32>; 2],
    texts: Vec<Vec<u8>>,
}

impl<'a> Anonymous<'a> {
    fn of(snapshot: &'a Snapshot, secrecy: Secrecy) -> Self {
        let mut table =
            TextTable { snapshot, kept: FxHashMap::default(), hidden: FxHashMap::default(), texts: vec![] };
        let hides_names = secrecy == Secrecy::TextsAndNames;
        let scripts = if hides_names { script_nodes(snapshot) } else { FxHashSet::default() };
        // The table starts with a string that is not used as a name.
        table.texts.push(b"<dummy>".to_vec());
        let node_names = (0..snapshot.node_count())
            .map(|node| {
                let number = snapshot.name_number(node);
                let is_of_program = match snapshot.kind(node) {
                    NodeKind::CLOSURE | NodeKind::CODE => true,
                    NodeKind::OBJECT => snapshot.locations().of(node).is_some(),
                    _ => scripts.contains(&node),
                };
                match secret_text(snapshot, node) {
                    Some(Secret::All) => table.hidden(number),
                    Some(Secret::Digits) => table.digits(number),
                    Some(Secret::Attributes(end)) => table.element(number, end),
                    Some(Secret::Address(end)) => table.text(snapshot.name(node)[..end].to_vec()),
                    None if hides_names && snapshot.name(node).starts_with(CODE_OF) => {
                        table.text(b"(code)".to_vec())
                    }
                    None if hides_names && is_of_program && !is_of_engine(snapshot.name(node)) => {
                        table.hidden(number)
                    }
                    None => table.kept(number),
                }
            })
            .collect();
        let is_data = data_keys(snapshot);
        let unnamed = vec![u32::MAX; snapshot.strings().count() as usize];
        let mut edge_names = [unnamed.clone(), unnamed];
        for edge in 0..snapshot.edge_count() {
            let (kind, number) = (snapshot.edge_kind(edge), snapshot.edge_name_number(edge));
            let Some(slot) = edge_names[usize::from(is_of_program(kind))]
                .get_mut(number as usize)
                .filter(|slot| kind.has_string_name() && **slot == u32::MAX)
            else {
                continue;
            };
            // An edge of a WeakMap entry shows the names of key and value, which may be texts.
            if let Some(bare) = without_names(snapshot.strings().get(number)) {
                *slot = table.text(bare);
                continue;
            }
            let is_kept = !hides_names && !is_data[number as usize]
                || matches!(snapshot.strings().get(number), b"__proto__" | b"constructor");
            *slot = if is_kept || !is_of_program(kind) { table.kept(number) } else { table.hidden(number) };
        }
        Self { snapshot, node_names, edge_names, texts: table.texts }
    }
}

/// Whether the program gives names to edges of this kind.
fn is_of_program(kind: EdgeKind) -> bool {
    matches!(kind, EdgeKind::PROPERTY | EdgeKind::CONTEXT | EdgeKind::SHORTCUT)
}

impl Rewriting for Anonymous<'_> {
    fn node_name(&self, node: u32) -> u32 {
        self.node_names[node as usize]
    }

    fn edge_name(&self, edge: u32) -> u32 {
        let number = self.snapshot.edge_name_number(edge);
        let names = &self.edge_names[usize::from(is_of_program(self.snapshot.edge_kind(edge)))];
        names.get(number as usize).copied().filter(|&name| name != u32::MAX).unwrap_or(0)
    }

    fn string_count(&self) -> u32 {
        self.texts.len() as u32
    }

    fn string(&self, number: u32) -> &[u8] {
        &self.texts[number as usize]
    }
}

/// Secret part of a node's name.
enum Secret {
    All,
    /// Number that the snapshot shows as a string of size 0.
    Digits,
    /// Text after the name of the element; the name ends at this index.
    Attributes(usize),
    /// Address of a page; it is cut off at this index.
    Address(usize),
}

/// Start of V8's names of a function's code.
const CODE_OF: &[u8] = b"(code for ";
/// Start of the name of an element outside of the document, in older versions.
const DETACHED: &[u8] = b"Detached <";

fn secret_text(snapshot: &Snapshot, node: u32) -> Option<Secret> {
    let name = snapshot.name(node);
    match snapshot.kind(node) {
        // The texts of these strings are in their parts.
        NodeKind::CONS_STRING | NodeKind::SLICED_STRING if name.starts_with(b"(") => None,
        NodeKind::STRING if snapshot.self_bytes(node) == 0 => match name {
            b"true" | b"false" | b"" => None,
            _ => Some(Secret::Digits),
        },
        NodeKind::STRING | NodeKind::CONS_STRING | NodeKind::SLICED_STRING | NodeKind::REGEXP => {
            Some(Secret::All)
        }
        NodeKind::SYMBOL | NodeKind::BIGINT if !is_of_engine(name) => Some(Secret::All),
        NodeKind::NATIVE if name.starts_with(b"<") => memchr::memchr(b' ', name).map(Secret::Attributes),
        NodeKind::NATIVE if name.starts_with(DETACHED) => {
            memchr::memchr(b' ', &name[DETACHED.len()..]).map(|at| Secret::Attributes(DETACHED.len() + at))
        }
        // Name such as `Window / https://…`.
        NodeKind::OBJECT | NodeKind::NATIVE | NodeKind::HIDDEN | NodeKind::SYNTHETIC => {
            memchr::memmem::find(name, b"://")
                .and_then(|_| memchr::memmem::find(name, b" / "))
                .map(Secret::Address)
        }
        _ => None,
    }
}

/// Whether V8 or its embedder gave the name.
fn is_of_engine(name: &[u8]) -> bool {
    name.is_empty()
        || [&b"("[..], b"system / ", b"Node / ", b"symbol", b"bigint"]
            .iter()
            .any(|known| name.starts_with(known))
}

fn script_nodes(snapshot: &Snapshot) -> FxHashSet<u32> {
    let is_script = |edge: &u32| {
        snapshot.is_edge_named(*edge, b"script") || snapshot.is_edge_named(*edge, b"script_or_debug_info")
    };
    (0..snapshot.edge_count()).filter(is_script).map(|edge| snapshot.graph().target(edge)).collect()
}

/// New string table.
struct TextTable<'a> {
    snapshot: &'a Snapshot,
    kept: FxHashMap<Vec<u8>, u32>,
    /// Placeholders by the old text.
    hidden: FxHashMap<&'a [u8], u32>,
    texts: Vec<Vec<u8>>,
}

impl TextTable<'_> {
    fn kept(&mut self, number: u32) -> u32 {
        self.text(self.snapshot.strings().get(number).to_vec())
    }

    fn text(&mut self, text: Vec<u8>) -> u32 {
        if let Some(&known) = self.kept.get(&text) {
            return known;
        }
        self.texts.push(text.clone());
        let number = (self.texts.len() - 1) as u32;
        self.kept.insert(text, number);
        number
    }

    /// Returns a unique placeholder such as `s17xxx`, as long as the text if possible.
    fn hidden(&mut self, number: u32) -> u32 {
        let old = self.snapshot.strings().get(number);
        if old.is_empty() {
            return self.text(Vec::new());
        }
        if let Some(&known) = self.hidden.get(old) {
            return known;
        }
        let mut text = format!("s{}", self.hidden.len()).into_bytes();
        text.resize(text.len().max(utf16_length(old)), b'x');
        self.texts.push(text);
        let new = (self.texts.len() - 1) as u32;
        self.hidden.insert(old, new);
        new
    }

    fn digits(&mut self, number: u32) -> u32 {
        let text = self.snapshot.strings().get(number).iter();
        self.text(text.map(|&byte| if byte.is_ascii_digit() { b'0' } else { byte }).collect())
    }

    fn element(&mut self, number: u32, end: usize) -> u32 {
        self.text([&self.snapshot.strings().get(number)[..end], b">"].concat())
    }
}

/// Strings that are names of some nodes and their edges; all others become empty.
struct NeededNames<'a> {
    snapshot: &'a Snapshot,
    is_needed: Vec<bool>,
}

impl<'a> NeededNames<'a> {
    fn of(snapshot: &'a Snapshot, nodes: &NodeSet) -> Self {
        let mut is_needed = vec![false; snapshot.strings().count() as usize];
        let mut need = |number: u32| {
            if let Some(slot) = is_needed.get_mut(number as usize) {
                *slot = true;
            }
        };
        for node in nodes.nodes() {
            need(snapshot.name_number(node));
            for edge in snapshot.graph().edges(node) {
                if snapshot.edge_kind(edge).has_string_name() && nodes.contains(snapshot.graph().target(edge))
                {
                    need(snapshot.edge_name_number(edge));
                }
            }
        }
        Self { snapshot, is_needed }
    }
}

impl Rewriting for NeededNames<'_> {
    fn node_name(&self, node: u32) -> u32 {
        self.snapshot.name_number(node)
    }

    fn edge_name(&self, edge: u32) -> u32 {
        self.snapshot.edge_name_number(edge)
    }

    fn string_count(&self) -> u32 {
        self.snapshot.strings().count()
    }

    fn string(&self, number: u32) -> &[u8] {
        if self.is_needed[number as usize] { self.snapshot.strings().get(number) } else { &[] }
    }
}
