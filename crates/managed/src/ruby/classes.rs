//! References of classes: constants, variables, methods.

use super::fields::VARIABLES_MAX;
use super::reader::Reader;
use super::slots::Slot;
use super::values::{CONSTANT_VALUE, CONTENTS};
use crate::error::Result;

/// Cache of a method: number of entries, method, entries of two objects.
const CACHE_COUNT: u64 = 4;
const CACHE_METHOD: u64 = 8;
const CACHE_ENTRIES: u64 = 16;

impl Reader<'_, '_> {
    pub(super) fn read_class(&mut self, avma: u64) -> Result<()> {
        let layout = self.values.layout;
        let superclass = self.internal("(superclass)");
        self.refer(self.values.word(avma, CONTENTS), superclass)?;
        let rest = self.values.class_rest(avma);
        if rest == 0 {
            return Ok(());
        }
        let variables = self.values.word(rest, layout.class_variables);
        if layout.has_shapes {
            match self.ids.by_shape(self.values, self.values.flags(avma)) {
                Some(names) => self.read_positions(variables, &names, names.len() as u64)?,
                None => self.read_table(variables)?,
            }
        } else {
            self.read_table(variables)?;
        }
        for (offset, name) in [(layout.class_path, "(name)"), (layout.attached, "(attached)")] {
            if let Some(offset) = offset {
                let name = self.internal(name);
                self.refer(self.values.word(rest, offset), name)?;
            }
        }
        let mut constants = Vec::new();
        self.values.id_entries(self.values.word(rest, layout.constants), |key, entry| {
            constants.push((key, entry));
        });
        for (key, entry) in constants {
            let name = self.attribute(key);
            self.refer(self.values.word(entry, CONSTANT_VALUE), name)?;
            let file = self.internal("(file)");
            self.refer(self.values.word(entry, CONSTANT_VALUE + 8), file)?;
            self.claim(entry);
        }
        self.read_methods(avma)
    }

    fn read_methods(&mut self, class_avma: u64) -> Result<()> {
        let called = self.values.word(self.values.class_rest(class_avma), self.values.layout.called_methods);
        let mut methods = Vec::new();
        for table in [self.values.methods(class_avma), called] {
            self.values.id_entries(table, |_, method| methods.push(method));
        }
        let name = self.internal("(method)");
        for method in methods {
            self.refer(method, name)?;
        }
        self.read_method_cache(self.values.class_rest(class_avma))
    }

    /// Caches of methods that were called by instances of a class.
    fn read_method_cache(&mut self, rest: u64) -> Result<()> {
        let mut caches = Vec::new();
        let table = self.values.word(rest, self.values.layout.called_methods + 8);
        self.values.id_entries(table, |_, cache| caches.push(cache));
        let name = self.internal("(method cache)");
        for cache in caches {
            self.refer(self.values.word(cache, CACHE_METHOD), name)?;
            let count = u64::from(self.values.pages.half(cache.wrapping_add(CACHE_COUNT)).unwrap_or(0));
            let entries = self.values.word(cache, CACHE_ENTRIES);
            let mut words = Vec::new();
            self.values.pages.words(entries, count.min(VARIABLES_MAX) * 2, |_, word| words.push(word));
            for word in words {
                self.refer(word, name)?;
            }
            self.claim(cache);
            self.claim(entries);
        }
        if table != 0 {
            self.claim(table);
            self.claim(self.values.id_items(table));
        }
        Ok(())
    }

    pub(super) fn read_included(&mut self, slot: Slot) -> Result<()> {
        self.read_words(slot, CONTENTS)?;
        if self.values.class_rest(slot.avma) != 0 { self.read_methods(slot.avma) } else { Ok(()) }
    }

    pub(super) fn claim_class(&mut self, avma: u64) {
        let layout = self.values.layout;
        let rest = self.values.class_rest(avma);
        self.claim(rest);
        let tables = [
            self.values.methods(avma),
            self.values.word(rest, layout.constants),
            self.values.word(rest, layout.called_methods),
        ];
        for table in tables.into_iter().filter(|&table| table != 0) {
            self.claim(table);
            self.claim(self.values.id_items(table));
        }
        let variables = self.values.word(rest, layout.class_variables);
        if layout.has_shapes {
            self.claim(variables);
        } else {
            self.claim_table(variables);
            // Positions of instance variables.
            self.claim_table(self.values.word(rest, 0));
        }
    }
}
