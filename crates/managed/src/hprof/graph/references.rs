//! References of the objects of a dump, record by record.

use heapr_v8::{EdgeKind, NodeKind};

use super::{CLASS_OBJECT, LAST_CLASSES, NO_CLASS, Objects, ThreadLocal, number_of_primitive};
use crate::dump_error::Result;
use crate::hprof::classes::{Class, ClassKind, Field, Reference, Role};
use crate::hprof::input::number;
use crate::hprof::records::{ArrayRecord, ClassRecord, Type, Visitor};

impl Objects<'_> {
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

    fn field_edge(&mut self, owner: u32, field: Field, name: u32, target: u32) -> Result<()> {
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
