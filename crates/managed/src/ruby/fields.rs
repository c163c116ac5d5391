//! References of objects, by kind.

use super::ids::number_of;
use super::reader::Reader;
use super::slots::Slot;
use super::values::{CLASS, CONTENTS, HAS_VARIABLES_BESIDE, Kind, OUTSIDE_OR_INSIDE, SHARED};
use crate::error::Result;
use crate::heap::{EdgeKind, EdgeName};

/// Largest number of entries of a hash whose keys are told as names.
const NAMED_ENTRIES_MAX: usize = 64;
/// Largest number of instance variables of an object.
pub(super) const VARIABLES_MAX: u64 = 1 << 16;
/// Flags of contents that soon move: of objects and arrays, and of structs.
const IS_PASSING: u64 = 1 << 25;
const IS_PASSING_STRUCT: u64 = 1 << 15;
/// Size by which such contents are counted.
pub(super) const PASSING_BYTES: u64 = 32 << 10;
/// Largest number of superclasses of a struct.
const SUPERCLASSES_MAX: usize = 16;
/// Variable of a class that has the names of a struct's members.
const MEMBERS: &str = "__members__";

impl Reader<'_, '_> {
    /// Adds the references of an object, and its size.
    pub(super) fn read_object(&mut self, node: u32, slot: Slot) -> Result<()> {
        let avma = slot.avma;
        let flags = self.values.flags(avma);
        let kind = Kind::of(flags);
        match kind {
            Kind::Object => self.read_variables(avma, flags)?,
            Kind::Class | Kind::Module => self.read_class(avma)?,
            Kind::Included => self.read_included(slot)?,
            Kind::Array => self.read_array(avma, flags)?,
            Kind::Hash => self.read_hash(avma)?,
            Kind::Struct => self.read_struct(avma, flags)?,
            Kind::Text if flags & SHARED != 0 && flags & OUTSIDE_OR_INSIDE != 0 => {
                let name = self.internal("(shared)");
                self.refer(self.values.word(avma, 32), name)?;
            }
            Kind::Symbol => {
                let name = self.internal("(text)");
                self.refer(self.values.word(avma, 24), name)?;
            }
            Kind::Internal => self.read_internal(slot, flags)?,
            Kind::Data => self.read_data(slot)?,
            Kind::Text | Kind::Float | Kind::Bignum | Kind::None => {}
            Kind::Pattern | Kind::File | Kind::Match | Kind::Pair => self.read_words(slot, CONTENTS)?,
        }
        if flags & HAS_VARIABLES_BESIDE != 0 {
            self.read_variables_beside(avma, flags)?;
        }
        if kind != Kind::Internal {
            self.read_class_of(avma)?;
        }
        let bytes = self.size_of(slot, flags);
        self.heap.set_own_bytes(node, bytes);
        self.claim_parts(avma, flags);
        Ok(())
    }

    /// A class of one object, or without a name, is held by its instances. Others are held by their
    /// constants.
    fn read_class_of(&mut self, avma: u64) -> Result<()> {
        let class = self.values.word(avma, CLASS);
        if self.slots.get(class).is_none() {
            return Ok(());
        }
        if self.is_singleton(class) || self.name_of_class(class).is_none() {
            let name = self.internal("(class)");
            self.refer(class, name)?;
        }
        Ok(())
    }

    /// Adds references for all words of an object's slot from an offset on that are objects, and
    /// for native blocks.
    pub(super) fn read_words(&mut self, slot: Slot, from: u64) -> Result<()> {
        let name = self.internal("(native)");
        for offset in (from..slot.bytes).step_by(8) {
            let word = self.values.word(slot.avma, offset);
            if !self.refer(word, name)? {
                self.refer_to_block(word, name)?;
            }
        }
        Ok(())
    }

    pub(super) fn read_positions(&mut self, first_avma: u64, names: &[u64], count: u64) -> Result<()> {
        for number in 0..count.min(VARIABLES_MAX) {
            if !self.values.pages.spend(1) {
                break;
            }
            let name = match names.get(number as usize).copied() {
                Some(number) if number != 0 => self.attribute(number),
                _ => self.internal("(variable)"),
            };
            self.refer(self.values.word(first_avma, number * 8), name)?;
        }
        Ok(())
    }

    pub(super) fn read_table(&mut self, table: u64) -> Result<()> {
        let mut entries = Vec::new();
        self.values.entries(table, |id, value| entries.push((id, value)));
        for (id, value) in entries {
            let name = self.attribute(number_of(id));
            self.refer(value, name)?;
        }
        Ok(())
    }

    /// Instance variables of a plain object.
    fn read_variables(&mut self, avma: u64, flags: u64) -> Result<()> {
        let is_inside = flags & OUTSIDE_OR_INSIDE != 0;
        let outside = self.values.word(avma, self.values.layout.object_variables);
        if self.values.layout.has_shapes {
            let Some(names) = self.ids.by_shape(self.values, flags) else { return self.read_table(outside) };
            let first_avma = if is_inside { avma + CONTENTS } else { outside };
            return self.read_positions(first_avma, &names, names.len() as u64);
        }
        let class_table = || self.values.word(self.values.class_rest(self.values.word(avma, CLASS)), 0);
        let (first_avma, count, table) = if is_inside {
            (avma + CONTENTS, 3, class_table())
        } else {
            (outside, self.values.half(avma, CONTENTS), self.values.word(avma, 32))
        };
        if flags & IS_PASSING != 0 && !is_inside {
            self.passing.insert(first_avma / PASSING_BYTES);
        }
        let names = self.ids.by_table(self.values, table);
        self.read_positions(first_avma, &names, count)
    }

    /// Instance variables that an object of another kind has in a table of all.
    fn read_variables_beside(&mut self, avma: u64, flags: u64) -> Result<()> {
        let Some(&table) = self.beside.get(&avma) else { return Ok(()) };
        self.claim(table);
        let count = self.values.pages.half(table).unwrap_or(0).into();
        if self.values.layout.has_shapes {
            let Some(names) = self.ids.by_shape(self.values, flags) else {
                return self.read_table(self.values.word(table, 0));
            };
            return self.read_positions(table.wrapping_add(8), &names, names.len() as u64);
        }
        let positions = self.values.word(self.values.class_rest(self.values.word(avma, CLASS)), 0);
        let names = self.ids.by_table(self.values, positions);
        self.read_positions(table.wrapping_add(8), &names, count)
    }

    fn read_array(&mut self, avma: u64, flags: u64) -> Result<()> {
        if flags & SHARED != 0 && flags & OUTSIDE_OR_INSIDE == 0 {
            let name = self.internal("(shared)");
            self.refer(self.values.word(avma, 24), name)?;
        }
        let (first_avma, count) = self.values.items(avma);
        if flags & IS_PASSING != 0 && flags & OUTSIDE_OR_INSIDE == 0 {
            self.passing.insert(first_avma / PASSING_BYTES);
        }
        let mut words = Vec::new();
        self.values.pages.words(first_avma, count, |number, word| words.push((number, word)));
        for (number, word) in words {
            self.refer(word, EdgeName::item(number))?;
        }
        Ok(())
    }

    fn read_hash(&mut self, avma: u64) -> Result<()> {
        let mut entries = Vec::new();
        self.values.hash_entries(avma, |key, value| entries.push((key, value)));
        let is_named = entries.len() <= NAMED_ENTRIES_MAX;
        for (number, (key, value)) in (0_u64..).zip(entries) {
            self.refer(key, EdgeName::item(number * 2))?;
            let name = match self.ids.symbol(self.values, key).filter(|name| is_named && is_name(name)) {
                Some(name) => self.named(EdgeKind::Attribute, &format!("[:{name}]")),
                None => EdgeName::item(number * 2 + 1),
            };
            self.refer(value, name)?;
        }
        let name = self.internal("(default)");
        self.refer(self.values.word(avma, self.values.layout.hash_default), name)?;
        Ok(())
    }

    fn read_struct(&mut self, avma: u64, flags: u64) -> Result<()> {
        let (first_avma, count) = self.values.members(avma);
        if flags & IS_PASSING_STRUCT != 0 && !self.values.layout.has_shapes {
            self.passing.insert(first_avma / PASSING_BYTES);
        }
        let names = self.members_of(self.values.word(avma, CLASS));
        for number in 0..count.min(VARIABLES_MAX) {
            if !self.values.pages.spend(1) {
                break;
            }
            let symbol = names.and_then(|names| self.values.item(names, number));
            let name = match symbol.and_then(|symbol| self.ids.symbol(self.values, symbol)) {
                Some(name) => self.named(EdgeKind::Attribute, &name),
                None => EdgeName::item(number),
            };
            self.refer(self.values.word(first_avma, number * 8), name)?;
        }
        Ok(())
    }

    /// Array of the names of the members of a struct's class.
    fn members_of(&mut self, class: u64) -> Option<u64> {
        if let Some(&known) = self.members.get(&class) {
            return known;
        }
        let mut at = class;
        let mut found = None;
        for _ in 0..SUPERCLASSES_MAX {
            if self.slots.get(at).is_none() || found.is_some() {
                break;
            }
            found = self.own_members(at);
            at = self.values.word(at, CONTENTS);
        }
        self.members.insert(class, found);
        found
    }

    fn own_members(&self, class: u64) -> Option<u64> {
        let variables = self.values.word(self.values.class_rest(class), self.values.layout.class_variables);
        let mut found = Vec::new();
        if self.values.layout.has_shapes {
            let names = self.ids.by_shape(self.values, self.values.flags(class))?;
            let words = (0_u64..).zip(names.iter());
            found.extend(words.map(|(number, &id)| (id, self.values.word(variables, number * 8))));
        } else {
            self.values.entries(variables, |id, value| found.push((number_of(id), value)));
        }
        let is_named = |id| self.ids.name(self.values, id).as_deref() == Some(MEMBERS);
        let arrays = found.into_iter().filter(|&(_, value)| self.slots.get(value).is_some());
        let mut named = arrays.filter(|&(id, value)| self.values.kind(value) == Kind::Array && is_named(id));
        named.next().map(|(_, value)| value)
    }

    /// Marks the memory that belongs to an object as a part of it.
    fn claim_parts(&mut self, avma: u64, flags: u64) {
        if self.blocks.is_empty() {
            return;
        }
        let is_outside = flags & OUTSIDE_OR_INSIDE == 0;
        match Kind::of(flags) {
            Kind::Text if !is_outside => self.claim(self.values.word(avma, 24)),
            Kind::Array if is_outside => self.claim(self.values.word(avma, 32)),
            Kind::Object if is_outside => {
                self.claim(self.values.word(avma, self.values.layout.object_variables));
            }
            Kind::Struct => self.claim(self.values.word(avma, 24)),
            Kind::Hash => {
                let (table, is_large) = self.values.hash_table(avma);
                self.claim(table);
                if is_large {
                    self.claim_table(table);
                }
            }
            Kind::Class | Kind::Module | Kind::Included => self.claim_class(avma),
            _ => {}
        }
    }

    pub(super) fn claim_table(&mut self, table: u64) {
        if table == 0 {
            return;
        }
        self.claim(table);
        for part in self.values.parts_of_table(table) {
            self.claim(part);
        }
    }
}

/// Whether a key can be a name, as of a setting.
fn is_name(key: &str) -> bool {
    !key.is_empty() && key.len() <= 40 && key.chars().all(|it| it.is_alphanumeric() || "_?!".contains(it))
}
