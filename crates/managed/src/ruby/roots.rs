//! References from outside of the heap.

use rustc_hash::FxHashSet;

use super::reader::Reader;
use super::runtime::Runtime;
use super::values::{CLASS, Kind};
use crate::error::Result;
use crate::heap::{Edge, EdgeKind, Root, RootKind};
use crate::reach::{edges_to, let_go, reach, reached_by_roots};

/// Row of objects that no root leads to.
const GARBAGE: &str = "(garbage, not yet collected)";
/// Global variable: its record, and in that the variable's address.
const VARIABLE: u64 = 0;
const VARIABLE_DATA: u64 = 8;
/// Variables of Ruby itself that are written in small letters.
const STREAMS: [&str; 3] = ["$stdin", "$stdout", "$stderr"];
/// Name of the virtual machine's structure.
const MACHINE: &str = "VM";
/// Rounds in which classes without a constant are found.
const CLASS_ROUNDS: usize = 8;

impl Reader<'_, '_> {
    /// Adds the roots, and a row for the objects that nothing leads to.
    pub(super) fn add_roots(&mut self) -> Result<()> {
        self.add_machine();
        self.add_globals();
        let on_stacks = self.add_threads()?;
        let mut reached = reached_by_roots(&self.heap);
        self.add_stacks(&on_stacks, &mut reached);
        self.add_held_classes(&mut reached)?;
        self.add_native_references(&mut reached)?;
        self.add_held_classes(&mut reached)?;
        self.add_other_blocks(&mut reached)?;
        self.add_garbage(&mut reached);
        Ok(())
    }

    fn push_root(&mut self, name: &str, kind: RootKind, edges: Vec<Edge>) {
        if !edges.is_empty() {
            self.heap.roots.push(Root { name: name.to_owned(), kind, place: 0, edges });
        }
    }

    /// Classes, and other objects that the virtual machine holds.
    fn add_machine(&mut self) {
        let mut words = vec![self.runtime.object_class];
        let ranges = Runtime::data_of(self.values.pages, self.request.mappings, &self.runtime.module);
        for (start_avma, end_avma) in ranges {
            for at_avma in (start_avma.next_multiple_of(8)..end_avma).step_by(8) {
                words.extend(self.values.pages.word(at_avma));
            }
        }
        let machine = self.objects().find(|&avma| {
            self.values.kind(avma) == Kind::Data && self.values.structure(avma).0.as_deref() == Some(MACHINE)
        });
        if let Some(machine) = machine {
            let (_, data) = self.values.structure(machine);
            words.push(machine);
            let count = self.values.layout.machine_bytes / 8;
            self.values.pages.words(data, count, |_, word| words.push(word));
        }
        let mut edges = Vec::new();
        let name = self.internal("(virtual machine)");
        let mut known = FxHashSet::default();
        for word in words {
            if known.insert(word) {
                self.root_edge(&mut edges, word, name);
            }
        }
        self.push_root("(virtual machine)", RootKind::Owner, edges);
    }

    fn add_globals(&mut self) {
        let mut found = Vec::new();
        self.values.id_entries(self.tables.globals, |key, record| {
            let variable = self.values.word(record, VARIABLE);
            found.push((key, self.values.word(variable, VARIABLE_DATA)));
        });
        let mut edges = Vec::new();
        for (key, data) in found {
            let name = self.attribute(key);
            let text = self.ids.name(self.values, key).unwrap_or_default();
            let is_of_program = text.chars().nth(1).is_some_and(char::is_lowercase);
            if is_of_program && !STREAMS.contains(&text.as_str()) {
                self.heap.program.insert(text);
            }
            // The variable of a program is the object itself; one in C is where that is.
            let word = if self.slots.get(data).is_some() { data } else { self.values.word(data, 0) };
            if data != 0 {
                self.root_edge(&mut edges, word, name);
            }
        }
        self.push_root("(global variables)", RootKind::Owner, edges);
    }

    /// Adds what only the stacks of threads lead to, for the moment.
    fn add_stacks(&mut self, words: &[u64], reached: &mut [bool]) {
        let name = self.internal("(stack)");
        let nodes: Vec<u32> = words.iter().filter_map(|&word| self.slots.get(word)).collect();
        let mut edges = edges_to(&self.heap, &nodes, reached);
        for edge in &mut edges {
            edge.name = name;
        }
        self.push_root("(stack)", RootKind::Program, edges);
    }

    /// Classes that only their instances lead to, as after their constant was removed, are held by
    /// these.
    fn add_held_classes(&mut self, reached: &mut [bool]) -> Result<()> {
        for _ in 0..CLASS_ROUNDS {
            self.check()?;
            let name = self.internal("(class)");
            let mut new = Vec::new();
            let mut classes = FxHashSet::default();
            for (number, avma) in self.objects().enumerate().filter(|&(number, _)| reached[number]) {
                let class = self.slots.get(self.values.word(avma, CLASS));
                let Some(target) = class.filter(|&class| !reached[class as usize]) else { continue };
                classes.insert(target);
                new.push((number as u32, Edge { target, name }));
            }
            if new.is_empty() {
                return Ok(());
            }
            self.heap.insert_edges(&mut new);
            for class in classes {
                reach(&self.heap, &[class], reached);
            }
        }
        Ok(())
    }

    /// Adds a row of what no root leads to: first what no other garbage refers to.
    fn add_garbage(&mut self, reached: &mut [bool]) {
        let nodes: Vec<u32> =
            (0..reached.len()).filter(|&node| !reached[node]).map(|node| node as u32).collect();
        let mut is_inner = FxHashSet::default();
        for &node in &nodes {
            is_inner.extend(
                self.heap.edges_of(node).iter().map(|edge| edge.target).filter(|&target| target != node),
            );
        }
        let weak = self.named(EdgeKind::Weak, "(garbage)");
        let_go(&mut self.heap, &nodes, reached, weak);
        let alone = nodes.iter().copied().filter(|node| !is_inner.contains(node));
        let order: Vec<u32> = alone.chain(nodes.iter().copied()).collect();
        let edges = edges_to(&self.heap, &order, reached);
        self.push_root(GARBAGE, RootKind::Garbage, edges);
    }
}
