//! Numbers for names that several snapshots share.

use rustc_hash::FxHashMap;

use super::heap_view::HeapView;
use crate::NodeKind;

/// Maps names to numbers that can be compared across snapshots.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: FxHashMap<String, u32>,
    names: Vec<String>,
}

impl Names {
    pub(super) fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    pub(super) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }
}

/// Classes of one snapshot's nodes, numbered by [`Names`]. Each name is looked up once.
#[derive(Debug)]
pub(super) struct Classes {
    by_string: Vec<u32>,
    by_kind: FxHashMap<NodeKind, u32>,
}

const UNKNOWN: u32 = u32::MAX;

impl Classes {
    pub(super) fn of(heap: &impl HeapView) -> Self {
        Self { by_string: vec![UNKNOWN; heap.string_count() as usize], by_kind: FxHashMap::default() }
    }

    /// Number of a node's class. The class of objects, native, hidden and WebAssembly objects is
    /// their name; that of other nodes is their kind.
    pub(super) fn class(&mut self, heap: &impl HeapView, names: &mut Names, node: u32) -> u32 {
        let kind = heap.kind(node);
        match heap.meta().language().class_of_kind(kind) {
            Some(group) if kind != NodeKind::HIDDEN => {
                *self.by_kind.entry(kind).or_insert_with(|| names.number(group))
            }
            _ => self.string(heap, names, heap.name_index(node)),
        }
    }

    /// Number of one of the snapshot's strings.
    pub(super) fn string(&mut self, heap: &impl HeapView, names: &mut Names, index: u32) -> u32 {
        let Some(slot) = self.by_string.get_mut(index as usize) else { return names.number("") };
        if *slot == UNKNOWN {
            *slot = names.number(&heap.string(index));
        }
        *slot
    }
}
