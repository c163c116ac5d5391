//! Second reading of a dump: the references of all objects.

use heapr_v8::{EdgeKind, NodeKind, Strings};
use rustc_hash::FxHashMap;

use super::buffers::NativeMemories;
use super::census::Census;
use super::classes::{Class, ClassKind, Reference, Role};
use super::input::number;
use super::records::{ArrayRecord, ClassRecord, Type, Visitor};
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

    fn edge_to_id(&mut self, kind: EdgeKind, name: &'static str, id: u64) -> Result<()> {
        if let Some(target) = self.census.map.get(id) {
            let name = self.text(name)?;
            self.edge(kind, name, target)?;
        }
        Ok(())
    }

    fn class_number(&mut self, id: u64) -> u32 {
        let last = &mut self.last_classes[(id >> 3) as usize % LAST_CLASSES];
        if last.0 != id || last.1 == NO_CLASS {
            let Some(&number) = self.census.class_of_id.get(&id) else {
                self.unknown_count += 1;
                return NO_CLASS;
            };
            *last = (id, number);
        }
        last.1
    }

    /// A loader holds all classes that it has loaded.
    fn edges_to_loaded(&mut self, number: u32, loader: u64) -> Result<()> {
        if self.is_loader[number as usize / 64] >> (number % 64) & 1 == 0 {
            return Ok(());
        }
        for class in self.loaded_by.remove(&loader).unwrap_or_default() {
            let name = self.text("(class)")?;
            self.edge(EdgeKind::INTERNAL, name, class)?;
        }
        Ok(())
    }

    fn field_edge(&mut self, owner: u32, field: super::classes::Field, name: u32, target: u32) -> Result<()> {
        let kind = match field.role {
            Role::Plain => EdgeKind::PROPERTY,
            Role::Internal | Role::Inner | Role::Characters => EdgeKind::INTERNAL,
            Role::Referent(_) | Role::Collectors => EdgeKind::WEAK,
        };
        match field.role {
            Role::Inner => self.inner.push(target),
            Role::Referent(reference @ (Reference::Soft | Reference::Final)) => {
                self.referents.push((reference, owner, target));
            }
            _ => {}
        }
        self.edge(kind, name, target)
    }

    /// Notes what later steps need of an instance.
    fn note(&mut self, owner: u32, class: &Class, values: &[u8], first_edge: usize) {
        let at = |name: &str, objects: &Self| {
            let mut edges = first_edge..objects.targets.len();
            let edge = edges.find(|&edge| objects.strings.get(objects.edge_names[edge]) == name.as_bytes());
            edge.map(|edge| (edge, objects.targets[edge]))
        };
        match class.kind {
            ClassKind::Other => {}
            ClassKind::String => {
                if let Some((_, array)) = at("value", self) {
                    let is_wide = class.coder.and_then(|at| values.get(at)) == Some(&1);
                    self.characters.push((array, owner, is_wide));
                }
            }
            ClassKind::ThreadLocalEntry => {
                if let (Some((_, key)), Some((edge, _))) = (at("referent", self), at("value", self)) {
                    self.thread_locals.push(ThreadLocal { key, value_edge: edge as u32 });
                }
            }
        }
    }
}

impl Visitor for Objects<'_> {
    fn class(&mut self, record: ClassRecord) -> Result<()> {
        if !self.is_next(record.id) {
            return Ok(());
        }
        self.begin(CLASS_OBJECT, NodeKind::OBJECT, 0);
        for &(name, value) in &record.statics {
            if let Some(target) = self.census.map.get(value) {
                // Texts that the code of the class has used, by HotSpot's own name.
                let is_own = self.census.text(name).starts_with('<');
                let kind = if is_own { EdgeKind::INTERNAL } else { EdgeKind::PROPERTY };
                let name = if is_own { self.text("(constants)")? } else { self.name(name)? };
                self.edge(kind, name, target)?;
            }
        }
        self.edge_to_id(EdgeKind::INTERNAL, "(superclass)", record.super_id)?;
        self.edge_to_id(EdgeKind::INTERNAL, "(loader)", record.loader)?;
        self.edge_to_id(EdgeKind::INTERNAL, "(signers)", record.signers)?;
        self.edge_to_id(EdgeKind::INTERNAL, "(domain)", record.domain)
    }

    fn instance(&mut self, id: u64, class: u64, values: &[u8]) -> Result<()> {
        if !self.is_next(id) {
            return Ok(());
        }
        let number_of_class = self.class_number(class);
        let owner = self.next_object();
        self.begin(number_of_class, NodeKind::OBJECT, 0);
        let first_edge = self.targets.len();
        let classes = self.classes;
        if let Some(class_facts) = classes.get(number_of_class as usize) {
            if class_facts.record_bytes != values.len() {
                self.unknown_count += 1;
            }
            let id_bytes = self.census.id_bytes();
            for (at, &field) in class_facts.fields.iter().enumerate() {
                let Some(value) = values.get(field.offset..field.offset + id_bytes) else { break };
                if let Some(target) = self.census.map.get(number(value)) {
                    let name = self.field_names[number_of_class as usize][at];
                    self.field_edge(owner, field, name, target)?;
                }
            }
            self.edge_to_id(EdgeKind::INTERNAL, "(loader)", class_facts.held_loader)?;
            if let Some(memory) = class_facts.buffer.and_then(|buffer| buffer.memory(values, id_bytes)) {
                let (number, name) = self.memories.number(memory, &mut self.strings)?;
                self.edge(EdgeKind::INTERNAL, name, self.census.ids.len() as u32 + number)?;
            }
            self.note(owner, class_facts, values, first_edge);
        }
        self.edges_to_loaded(owner, id)
    }

    fn array(&mut self, array: ArrayRecord) -> Result<u64> {
        if !self.is_next(array.id) {
            return Ok(0);
        }
        if array.kind != Type::Object {
            self.begin(number_of_primitive(array.kind), NodeKind::OBJECT, array.count);
            return Ok(0);
        }
        let class = self.class_number(array.class);
        self.array_position = 0;
        self.begin(class, NodeKind::ARRAY, array.count);
        let held_loader = self.classes.get(class as usize).map_or(0, |class| class.held_loader);
        self.edge_to_id(EdgeKind::INTERNAL, "(loader)", held_loader)?;
        Ok(u64::MAX)
    }

    fn contents(&mut self, _array: ArrayRecord, bytes: &[u8]) -> Result<()> {
        for item in bytes.chunks_exact(self.census.id_bytes()) {
            if let Some(target) = self.census.map.get(number(item)) {
                self.edge(EdgeKind::ELEMENT, self.array_position, target)?;
            }
            self.array_position = self.array_position.saturating_add(1);
        }
        Ok(())
    }
}
