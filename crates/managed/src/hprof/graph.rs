//! Second reading of a dump: the references of all objects.

mod references;

use heapr_v8::{EdgeKind, NodeKind, Strings};
use rustc_hash::FxHashMap;

use super::buffers::NativeMemories;
use super::census::Census;
use super::classes::{Class, Reference};
use super::records::Type;
use crate::dump_error::{DumpError, Result};

/// Class number of class objects.
pub(super) const CLASS_OBJECT: u32 = u32::MAX;
/// Class number of arrays of a primitive type: this minus the number of the type.
const PRIMITIVE_ARRAYS: u32 = u32::MAX - 1;
/// Class number of native memory.
pub(super) const NATIVE_MEMORY: u32 = u32::MAX - 17;
/// Class number of objects whose class the dump lacks.
pub(super) const NO_CLASS: u32 = u32::MAX - 16;

/// Largest number of references of a dump.
const EDGES_MAX: usize = u32::MAX as usize - (1 << 24);
/// Number of classes whose numbers are at hand.
const LAST_CLASSES: usize = 256;
/// Largest number of references of an object among which a field is searched.
const NAMED_MAX: usize = 1 << 12;

/// Types of the items of arrays.
const TYPES: [Type; 8] =
    [Type::Boolean, Type::Char, Type::Float, Type::Double, Type::Byte, Type::Short, Type::Int, Type::Long];

/// Type of the items of an array, by its class number.
pub(super) fn primitive_of(class: u32) -> Option<Type> {
    TYPES.get(PRIMITIVE_ARRAYS.wrapping_sub(class) as usize).copied()
}

fn number_of_primitive(kind: Type) -> u32 {
    PRIMITIVE_ARRAYS - TYPES.iter().position(|&known| known == kind).unwrap_or(0) as u32
}

/// A thread-local value: its entry, the edge to it, and the key.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadLocal {
    pub(super) key: u32,
    pub(super) value_edge: u32,
}

/// Objects and their references, by the objects' numbers.
#[derive(Debug)]
pub(super) struct Objects<'a> {
    census: &'a Census,
    /// Number of the first object, if these are of a part of the dump.
    first_object: u32,
    pub(super) classes: &'a [Class],
    /// Class number of each object.
    pub(super) class_of: Vec<u32>,
    pub(super) kinds: Vec<NodeKind>,
    /// Number of items of each array; 0 for other objects.
    pub(super) counts: Vec<u32>,
    pub(super) first_edges: Vec<u32>,
    pub(super) targets: Vec<u32>,
    pub(super) edge_names: Vec<u32>,
    pub(super) edge_kinds: Vec<EdgeKind>,
    pub(super) strings: Strings,
    name_numbers: FxHashMap<u64, u32>,
    /// Numbers of the names of each class's fields.
    field_names: Vec<Box<[u32]>>,
    text_numbers: FxHashMap<&'static str, u32>,
    /// Classes by the id of their loader.
    loaded_by: FxHashMap<u64, Vec<u32>>,
    /// A bit for each object: whether it is a loader of classes.
    is_loader: Vec<u64>,
    /// Numbers of the classes of the last objects, by a part of their ids.
    last_classes: Box<[(u64, u32); LAST_CLASSES]>,
    /// Objects that soft or final references refer to, with the reference.
    pub(super) referents: Vec<(Reference, u32, u32)>,
    /// Collections that are part of another one.
    pub(super) inner: Vec<u32>,
    pub(super) thread_locals: Vec<ThreadLocal>,
    /// Native memory, whose nodes come after all objects.
    pub(super) memories: NativeMemories,
    /// Array of characters of each string, and the string; `true` for UTF-16.
    pub(super) characters: Vec<(u32, u32, bool)>,
    /// Position in the array of objects that is being read.
    array_position: u32,
    /// Number of objects of a class that the dump lacks, or of a record that does not fit it.
    pub(super) unknown_count: u64,
}

impl<'a> Objects<'a> {
    pub(super) fn new(
        census: &'a Census,
        classes: &'a [Class],
        dump_bytes: u64,
        first_object: u32,
    ) -> Result<Self> {
        let object_count = census.ids.len();
        let mut loaded_by: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for class in census.classes.iter().filter(|class| class.loader != 0) {
            loaded_by.entry(class.loader).or_default().extend(census.map.get(class.id));
        }
        let mut is_loader = vec![0; object_count.div_ceil(64)];
        for loader in loaded_by.keys().filter_map(|&loader| census.map.get(loader)) {
            is_loader[loader as usize / 64] |= 1 << (loader % 64);
        }
        let mut strings = Strings::default();
        strings.push(b"")?;
        // Room that is never touched costs nothing.
        let items = census.item_count.min(dump_bytes / census.id_bytes() as u64);
        let edge_room = object_count * 2 + usize::try_from(items).unwrap_or(0);
        let mut objects = Self {
            census,
            first_object,
            classes,
            class_of: Vec::with_capacity(object_count),
            kinds: Vec::with_capacity(object_count),
            counts: Vec::with_capacity(object_count),
            first_edges: Vec::with_capacity(object_count + 1),
            targets: Vec::with_capacity(edge_room),
            edge_names: Vec::with_capacity(edge_room),
            edge_kinds: Vec::with_capacity(edge_room),
            strings,
            name_numbers: FxHashMap::default(),
            field_names: Vec::with_capacity(classes.len()),
            text_numbers: FxHashMap::default(),
            loaded_by,
            is_loader,
            last_classes: Box::new([(0, NO_CLASS); LAST_CLASSES]),
            referents: Vec::new(),
            inner: Vec::new(),
            thread_locals: Vec::new(),
            memories: NativeMemories::default(),
            characters: Vec::new(),
            array_position: 0,
            unknown_count: 0,
        };
        for class in classes {
            let numbers: Result<Box<[u32]>> =
                class.fields.iter().map(|field| objects.name(field.name)).collect();
            objects.field_names.push(numbers?);
        }
        Ok(objects)
    }

    /// Adds the objects of the next part.
    pub(super) fn append(&mut self, next: Self) -> Result<()> {
        // Own number of each name. Those of fields are the same in all parts.
        let mut own_names: Vec<u32> = (0..next.strings.count()).collect();
        for (&id, &number) in &next.name_numbers {
            own_names[number as usize] = self.name(id)?;
        }
        for (&text, &number) in &next.text_numbers {
            own_names[number as usize] = self.text(text)?;
        }
        let first_memory = self.census.ids.len() as u32;
        let mut memory_numbers = Vec::with_capacity(next.memories.all.len());
        for (memory, number) in next.memories.with_names() {
            let (own, own_name) = self.memories.number(memory, &mut self.strings)?;
            memory_numbers.push(first_memory + own);
            own_names[number as usize] = own_name;
        }
        if self.targets.len() + next.targets.len() >= EDGES_MAX {
            return Err(DumpError::TooMany { what: "references" });
        }
        // A part that the second reading did not come to the end of.
        while self.next_object() < next.first_object {
            self.begin(NO_CLASS, NodeKind::OBJECT, 0);
        }
        let first_edge = self.targets.len() as u32;
        self.class_of.extend(next.class_of);
        self.kinds.extend(next.kinds);
        self.counts.extend(next.counts);
        self.first_edges.extend(next.first_edges.into_iter().map(|edge| first_edge + edge));
        let own_target = |target: u32| match target.checked_sub(first_memory) {
            Some(memory) => memory_numbers.get(memory as usize).copied().unwrap_or(target),
            None => target,
        };
        self.targets.extend(next.targets.into_iter().map(own_target));
        let names = next.edge_names.into_iter().zip(&next.edge_kinds);
        self.edge_names.extend(names.map(|(name, &kind)| match kind {
            EdgeKind::ELEMENT => name,
            _ => own_names[name as usize],
        }));
        self.edge_kinds.extend(next.edge_kinds);
        self.referents.extend(next.referents);
        self.inner.extend(next.inner);
        self.characters.extend(next.characters);
        let moved = next.thread_locals.into_iter();
        self.thread_locals
            .extend(moved.map(|it| ThreadLocal { value_edge: first_edge + it.value_edge, ..it }));
        self.unknown_count += next.unknown_count;
        Ok(())
    }

    /// Ends the reading. Objects that the second reading did not come to have no references.
    pub(super) fn finish(&mut self) {
        while self.class_of.len() < self.census.ids.len() {
            self.begin(NO_CLASS, NodeKind::OBJECT, 0);
        }
        for _ in 0..self.memories.all.len() {
            self.begin(NATIVE_MEMORY, NodeKind::NATIVE, 0);
        }
        self.first_edges.push(self.targets.len() as u32);
        for &node in &self.inner {
            if let Some(kind) = self.kinds.get_mut(node as usize) {
                *kind = NodeKind::ARRAY;
            }
        }
        for (number, class) in self.class_of.iter().enumerate() {
            if self.classes.get(*class as usize).is_some_and(|class| class.is_storage) {
                self.kinds[number] = NodeKind::ARRAY;
            }
        }
        self.characters.sort_unstable();
    }

    /// Edges of an object.
    pub(super) fn edges(&self, node: u32) -> std::ops::Range<usize> {
        let at = |node: usize| self.first_edges.get(node).map_or(self.targets.len(), |&edge| edge as usize);
        at(node as usize)..at(node as usize + 1)
    }

    /// Returns the target of an object's field.
    pub(super) fn field(&self, node: u32, name: &str) -> Option<u32> {
        let is_named = |&edge: &usize| {
            self.edge_kinds[edge] != EdgeKind::ELEMENT
                && self.strings.get(self.edge_names[edge]) == name.as_bytes()
        };
        self.edges(node).take(NAMED_MAX).find(is_named).map(|edge| self.targets[edge])
    }

    /// Number of a text.
    pub(super) fn text(&mut self, text: &'static str) -> Result<u32> {
        if let Some(&known) = self.text_numbers.get(text) {
            return Ok(known);
        }
        let number = self.strings.push(text.as_bytes())?;
        self.text_numbers.insert(text, number);
        Ok(number)
    }

    /// Number of the text of a name's id.
    fn name(&mut self, id: u64) -> Result<u32> {
        if let Some(&known) = self.name_numbers.get(&id) {
            return Ok(known);
        }
        let number = self.strings.push(self.census.text(id).as_bytes())?;
        self.name_numbers.insert(id, number);
        Ok(number)
    }

    /// Whether the next object of the dump is the one with this id. An object that is repeated is
    /// not.
    fn is_next(&self, id: u64) -> bool {
        self.census.ids.get(self.next_object() as usize) == Some(&id)
    }

    /// Number of the next object.
    fn next_object(&self) -> u32 {
        self.first_object + self.class_of.len() as u32
    }

    fn begin(&mut self, class: u32, kind: NodeKind, count: u32) {
        self.class_of.push(class);
        self.kinds.push(kind);
        self.counts.push(count);
        self.first_edges.push(self.targets.len() as u32);
    }

    fn edge(&mut self, kind: EdgeKind, name: u32, target: u32) -> Result<()> {
        if self.targets.len() >= EDGES_MAX {
            return Err(DumpError::TooMany { what: "references" });
        }
        self.targets.push(target);
        self.edge_names.push(name);
        self.edge_kinds.push(kind);
        Ok(())
    }
}
