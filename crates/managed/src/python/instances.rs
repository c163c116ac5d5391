//! Attributes of instances, and dicts that are shown as their owner's attributes.

use rustc_hash::FxHashMap;

use super::dict::{self, Attributes};
use super::objects::{self, MODULE_DICT, flag, is_pointer, type_of};
use super::reader::Reader;
use super::types::{Form, Type};
use crate::error::Result;
use crate::heap::EdgeKind;
use heapr_known::cpython::Values;

/// Type of objects with attributes of their own in each thread.
const THREAD_LOCAL: &str = "_thread._local";

impl Reader<'_, '_> {
    /// Returns where an instance has its attributes.
    pub(super) fn attributes_of(&self, avma: u64, of: &Type) -> Attributes {
        if of.has(flag::MANAGED_DICT) && self.layout.values != Values::None {
            let inline = of.has(flag::INLINE_VALUES) && self.layout.values == Values::Inline;
            let inline_at_avma = inline.then_some(avma + of.basic_bytes);
            return dict::managed(self.pages, self.layout, avma, of.cached_keys, inline_at_avma);
        }
        let offset = match of.dict_offset {
            0 => return Attributes::None,
            offset if offset > 0 => offset as u64,
            // From the end of an object of variable size.
            offset => {
                let count = (self.pages.word_or_zero(avma + objects::SIZE) as i64).unsigned_abs();
                let items = count.saturating_mul(of.item_bytes);
                let bytes = of.basic_bytes.saturating_add(items).checked_next_multiple_of(8).unwrap_or(0);
                match bytes.checked_sub(offset.unsigned_abs()) {
                    Some(offset) => offset,
                    None => return Attributes::None,
                }
            }
        };
        match avma.checked_add(offset).and_then(|at_avma| self.pages.word(at_avma)) {
            Some(dict_avma) if is_pointer(dict_avma) => Attributes::Dict(dict_avma),
            _ => Attributes::None,
        }
    }

    /// Finds the dicts whose entries are shown as attributes: of modules, of types, and of
    /// instances that alone refer to them.
    pub(super) fn fold_dicts(&mut self) {
        let mut folded: FxHashMap<u32, u32> = FxHashMap::default();
        for (node, facts) in self.heap.nodes.iter().enumerate() {
            let avma = facts.address_avma;
            let Some(of) = self.type_of_node(node as u32) else { continue };
            if of.name == THREAD_LOCAL {
                for dict_avma in self.dicts_of_threads(avma, &of) {
                    if let Some(dict) = self.map.get(dict_avma) {
                        folded.entry(dict).or_insert(node as u32);
                    }
                }
                continue;
            }
            let (dict_avma, is_sole) = match of.form {
                Form::Module => (self.pages.word_or_zero(avma + MODULE_DICT), true),
                Form::Type => (self.pages.word_or_zero(avma + objects::TYPE_DICT), true),
                _ => match self.attributes_of(avma, &of) {
                    Attributes::Dict(dict_avma) => (dict_avma, self.pages.word(dict_avma) == Some(1)),
                    Attributes::None | Attributes::Values { .. } => continue,
                },
            };
            let is_dict = || {
                type_of(self.pages, dict_avma)
                    .and_then(|type_avma| self.types.at(type_avma))
                    .is_some_and(|of| of.form == Form::Dict)
            };
            if is_sole
                && let Some(dict) = self.map.get(dict_avma)
                && is_dict()
            {
                folded.entry(dict).or_insert(node as u32);
            }
        }
        self.folded = folded;
    }

    /// Returns the dicts that a `threading.local` has of the threads
    /// (up to 3.12).
    fn dicts_of_threads(&self, avma: u64, of: &Type) -> Vec<u64> {
        let form = |avma: u64| {
            type_of(self.pages, avma).and_then(|type_avma| self.types.at(type_avma)).map(|of| of.form)
        };
        let mut found = Vec::new();
        for offset in (objects::HEAD_BYTES..of.basic_bytes / 8 * 8).step_by(8) {
            let table_avma = self.pages.word_or_zero(avma + offset);
            if self.map.get(table_avma).is_none() || form(table_avma) != Some(Form::Dict) {
                continue;
            }
            dict::entries(self.pages, self.layout, table_avma, |_, _, value| {
                if self.map.get(value).is_some() && form(value) == Some(Form::Dict) {
                    found.push(value);
                }
            });
        }
        found
    }

    /// Adds what the threads have in a `threading.local` as its attributes.
    pub(super) fn read_thread_local(&mut self, node: u32, avma: u64, of: &Type) -> Result<()> {
        if of.name != THREAD_LOCAL {
            return Ok(());
        }
        for dict_avma in self.dicts_of_threads(avma, of) {
            if self.owner_of(dict_avma) == Some(node) {
                self.read_folded(dict_avma)?;
            }
        }
        Ok(())
    }

    /// Adds the attributes of an instance; returns the bytes that they take outside of dicts.
    pub(super) fn read_attributes(&mut self, node: u32, avma: u64, of: &Type) -> Result<u64> {
        match self.attributes_of(avma, of) {
            Attributes::None => Ok(0),
            Attributes::Dict(dict_avma) => {
                let name = self.internal("__dict__");
                self.refer(dict_avma, name)?;
                if self.owner_of(dict_avma) == Some(node) {
                    self.read_folded(dict_avma)?;
                }
                Ok(0)
            }
            Attributes::Values { first_avma, bytes } => {
                let mut found = Vec::new();
                dict::values(self.pages, self.layout, of.cached_keys, first_avma, |key, value| {
                    found.push((key, value));
                });
                for (number, (key, value)) in found.into_iter().enumerate() {
                    let name = self.attribute_of_instance(key, number as u64);
                    self.refer(value, name)?;
                }
                Ok(bytes)
            }
        }
    }

    /// Adds the entries of an instance's dict as attributes of the node under work.
    fn read_folded(&mut self, dict_avma: u64) -> Result<()> {
        let mut found = Vec::new();
        dict::entries(self.pages, self.layout, dict_avma, |number, key, value| {
            found.push((number, key, value));
        });
        for (number, key, value) in found {
            let name = self.attribute_of_instance(key, number);
            self.refer(value, name)?;
        }
        Ok(())
    }

    /// Adds the entries of a module's or type's dict as attributes of the node under work.
    pub(super) fn read_folded_namespace(&mut self, dict_avma: u64) -> Result<()> {
        let mut found = Vec::new();
        dict::entries(self.pages, self.layout, dict_avma, |_, key, value| found.push((key, value)));
        for (key, value) in found {
            let name = self.attribute(EdgeKind::Attribute, key);
            self.refer(value, name)?;
        }
        Ok(())
    }
}
