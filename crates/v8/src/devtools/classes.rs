//! The classes of a heap, and which one each node belongs to.

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
    /// Classifies the nodes; plain objects by `interfaces`, or by those that the snapshot itself
    /// suggests.
    pub(crate) fn of(snapshot: &Snapshot, interfaces: Option<&[InterfaceDefinition]>) -> Self {
        let plain = PlainObjects::of(snapshot);
        let interfaces = interfaces.map_or_else(|| plain.infer(snapshot), <[_]>::to_vec);
        let mut table = ClassTable::default();
        let mut of_node = table.classify(snapshot);
        let matches = plain.best_matches(snapshot, &interfaces);
        // Locations of plain objects: rare, but a class with one is another class.
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

    /// Takes over classes, the class of each node and the interfaces, unless a node has a class
    /// that is not there.
    pub(crate) fn from_parts(
        classes: Vec<Class>,
        of_node: Vec<u32>,
        interfaces: Vec<InterfaceDefinition>,
    ) -> Option<Self> {
        let is_good =
            of_node.iter().copied().max().is_none_or(|greatest| (greatest as usize) < classes.len());
        is_good.then_some(Self { classes, of_node, interfaces })
    }

    /// The class of each node.
    pub(crate) fn of_nodes(&self) -> &[u32] {
        &self.of_node
    }

    /// How many there are. Some may have no nodes.
    pub fn count(&self) -> u32 {
        self.classes.len() as u32
    }

    /// All of them, by their numbers.
    pub fn all(&self) -> &[Class] {
        &self.classes
    }

    /// The class of that number.
    pub fn get(&self, class: u32) -> &Class {
        &self.classes[class as usize]
    }

    /// The number of a node's class.
    #[inline]
    pub fn of_node(&self, node: u32) -> u32 {
        self.of_node[node as usize]
    }

    /// The interfaces that plain objects were sorted by.
    pub fn interfaces(&self) -> &[InterfaceDefinition] {
        &self.interfaces
    }

    /// The numbers of the classes with that name, or with that key.
    pub fn named(&self, name: &str) -> Vec<u32> {
        (0..self.count())
            .filter(|&class| self.get(class).name_text() == name || self.get(class).key() == name)
            .collect()
    }
}

#[derive(Default)]
struct ClassTable {
    names: FxHashMap<Vec<u8>, u32>,
    /// By the name's number and the constructor's place.
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
        // The class without a location, for each fixed kind and for each name that was met.
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
