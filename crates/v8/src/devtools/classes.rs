//! Classes of a heap, and the class of each node.

use rustc_hash::FxHashMap;

use crate::devtools::class_names::{ClassName, class_name_of_name, class_name_rule};
use crate::devtools::interfaces::{InterfaceDefinition, PlainObjects};
use crate::objects::{Class, ConstructorPlace};
use crate::{Location, NodeKind, Snapshot};

/// All classes of a heap.
#[derive(Debug)]
pub struct Classes {
    classes: Vec<Class>,
    of_node: Vec<u32>,
    interfaces: Vec<InterfaceDefinition>,
}

impl Classes {
    /// Classifies the nodes. Plain objects are classified by `interfaces`, or by those inferred
    /// from the snapshot itself.
    pub(crate) fn of(snapshot: &Snapshot, interfaces: Option<&[InterfaceDefinition]>) -> Self {
        let plain = PlainObjects::of(snapshot);
        let interfaces = interfaces.map_or_else(|| plain.infer(snapshot), <[_]>::to_vec);
        let mut table = ClassTable::default();
        let mut of_node = table.classify(snapshot);
        let matches = plain.best_matches(snapshot, &interfaces);
        // Few plain objects have a location, but a class with a location is a class of its own.
        let names: Vec<Option<u32>> =
            matches.iter().map(|found| found.map(|at| table.name_number(&interfaces[at].name))).collect();
        for &(node, shape) in &plain.shape_of {
            if let Some(name) = names[shape as usize] {
                let location = snapshot.locations.of(node);
                of_node[node as usize] = table.class_number(name, location);
            }
        }
        Self { classes: table.finish(), of_node, interfaces }
    }

    /// Builds the classes from stored parts. Returns `None` if a node's class number is out of
    /// range.
    pub(crate) fn from_parts(
        classes: Vec<Class>,
        of_node: Vec<u32>,
        interfaces: Vec<InterfaceDefinition>,
    ) -> Option<Self> {
        let is_good =
            of_node.iter().copied().max().is_none_or(|greatest| (greatest as usize) < classes.len());
        is_good.then_some(Self { classes, of_node, interfaces })
    }

    /// Class number of each node.
    pub(crate) fn of_nodes(&self) -> &[u32] {
        &self.of_node
    }

    /// Number of classes. Some may have no nodes.
    pub fn count(&self) -> u32 {
        self.classes.len() as u32
    }

    /// All classes, by number.
    pub fn all(&self) -> &[Class] {
        &self.classes
    }

    /// Class with that number.
    pub fn get(&self, class: u32) -> &Class {
        &self.classes[class as usize]
    }

    /// Class number of a node.
    #[inline]
    pub fn of_node(&self, node: u32) -> u32 {
        self.of_node[node as usize]
    }

    /// Interfaces by which plain objects were classified.
    pub fn interfaces(&self) -> &[InterfaceDefinition] {
        &self.interfaces
    }

    /// Returns the numbers of the classes with that name or key.
    pub fn named(&self, name: &str) -> Vec<u32> {
        (0..self.count())
            .filter(|&class| self.get(class).name_text() == name || self.get(class).key() == name)
            .collect()
    }
}

#[derive(Default)]
struct ClassTable {
    names: FxHashMap<Vec<u8>, u32>,
    /// Class numbers by the name's number and the constructor's location.
    numbers: FxHashMap<(u32, Option<ConstructorPlace>), u32>,
}

impl ClassTable {
    fn name_number(&mut self, name: &[u8]) -> u32 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.insert(name.to_vec(), number);
        number
    }

    fn class_number(&mut self, name: u32, location: Option<Location>) -> u32 {
        let place = location.map(|location| (location.script_id, location.line, location.column));
        let next = self.numbers.len() as u32;
        *self.numbers.entry((name, place)).or_insert(next)
    }

    fn classify(&mut self, snapshot: &Snapshot) -> Vec<u32> {
        const NONE: u32 = u32::MAX;
        // Class without a location, for each fixed kind and each name seen.
        let mut of_kind = [NONE; 64];
        let mut of_name: Vec<(u32, u32)> = vec![(NONE, NONE); snapshot.strings.count() as usize];
        let mut locations = snapshot.locations.all().iter().peekable();
        (0..snapshot.node_count())
            .map(|node| {
                while locations.next_if(|location| location.node < node).is_some() {}
                let location = locations.next_if(|location| location.node == node);
                let kind = snapshot.kind(node);
                let known = of_kind[usize::from(kind.number() & 63)];
                if known != NONE {
                    return known;
                }
                if let ClassName::Fixed(name) = class_name_rule(snapshot, kind) {
                    let name = self.name_number(&name);
                    let class = self.class_number(name, None);
                    of_kind[usize::from(kind.number() & 63)] = class;
                    return class;
                }
                let number = snapshot.name_number(node);
                let (name, class) = match of_name.get(number as usize) {
                    Some(&(name, class)) if name != NONE => (name, class),
                    _ => {
                        let name = self.name_number(&class_name_of_name(snapshot.strings.get(number)));
                        let class = self.class_number(name, None);
                        if let Some(slot) = of_name.get_mut(number as usize) {
                            *slot = (name, class);
                        }
                        (name, class)
                    }
                };
                match location {
                    Some(&location) if kind == NodeKind::OBJECT => self.class_number(name, Some(location)),
                    _ => class,
                }
            })
            .collect()
    }

    fn finish(self) -> Vec<Class> {
        let mut names = vec![Vec::new(); self.names.len()];
        for (name, number) in self.names {
            names[number as usize] = name;
        }
        let mut classes = vec![Class { location: None, name: Vec::new() }; self.numbers.len()];
        for ((name, location), number) in self.numbers {
            classes[number as usize] = Class { location, name: names[name as usize].clone() };
        }
        classes
    }
}
