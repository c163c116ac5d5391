//! Names of references, and source locations of types and code.

use rustc_hash::FxHashMap;

use super::objects::{self, flag, is_pointer, type_of};
use super::reader::Reader;
use super::types::{Form, Type};
use crate::heap::{EdgeKind, EdgeName, Place};

/// Largest number of characters of a name.
pub(super) const NAME_CHARS_MAX: u64 = 200;
/// Largest number of entries of a dict whose keys are shown; those of a larger one are data.
const KEYS_SHOWN_MAX: u64 = 64;
/// Largest number of cached names.
const CACHED_MAX: usize = 1 << 16;
/// Largest number of modules whose files are looked up.
const MODULES_MAX: usize = 1 << 20;
/// Largest number of functions of a class that are searched for its location.
const FUNCTIONS_MAX: u32 = 256;

impl Reader<'_, '_> {
    /// Index of a str object's text among the strings, all of which are written. With
    /// `only_identifiers`, another text is not added to them.
    fn text_of(&mut self, avma: u64, only_identifiers: bool) -> Option<u32> {
        if let Some(&known) = self.names.texts.get(&(avma, only_identifiers)) {
            return known;
        }
        let text = if is_pointer(avma) { self.types.text_at(avma, NAME_CHARS_MAX) } else { None };
        let text = text.filter(|text| !only_identifiers || is_identifier(text));
        let found = text.map(|text| self.heap.strings.number(&text));
        if self.names.texts.len() >= CACHED_MAX {
            self.names.texts.clear();
        }
        self.names.texts.insert((avma, only_identifiers), found);
        found
    }

    /// Name of an attribute or variable, from its str object.
    pub(super) fn attribute(&mut self, kind: EdgeKind, key_avma: u64) -> EdgeName {
        let text = match self.text_of(key_avma, false) {
            Some(text) => text,
            None => self.heap.strings.number("?"),
        };
        EdgeName::text(kind, text)
    }

    /// Name of a value in a dict of `used` entries: its key if that may be shown, else its
    /// position.
    pub(super) fn key(&mut self, key_avma: u64, used: u64, position: u64) -> EdgeName {
        if used <= KEYS_SHOWN_MAX
            && let Some(text) = self.text_of(key_avma, true)
        {
            if let Some(&shown) = self.names.keys.get(&text) {
                return EdgeName::text(EdgeKind::Attribute, shown);
            }
            let shown = format!("['{}']", self.heap.strings.get(text));
            let shown = self.heap.strings.number(&shown);
            self.names.keys.insert(text, shown);
            return EdgeName::text(EdgeKind::Attribute, shown);
        }
        EdgeName::item(position)
    }

    /// Name of a value among an instance's attributes: its key if that is an identifier, else its
    /// position. A program may have any text as a key there, through `setattr` or `__dict__`.
    pub(super) fn attribute_of_instance(&mut self, key_avma: u64, position: u64) -> EdgeName {
        match self.text_of(key_avma, true) {
            Some(text) => EdgeName::text(EdgeKind::Attribute, text),
            None => EdgeName::item(position),
        }
    }

    /// Name of a field of the runtime.
    pub(super) fn internal(&mut self, name: &'static str) -> EdgeName {
        EdgeName::text(EdgeKind::Internal, self.fixed(name))
    }

    /// Name of a reference that holds nothing.
    pub(super) fn weak(&mut self, name: &'static str) -> EdgeName {
        EdgeName::text(EdgeKind::Weak, self.fixed(name))
    }

    /// Index of a text of heapr's own among the strings.
    fn fixed(&mut self, name: &'static str) -> u32 {
        let key = (name.as_ptr() as usize, name.len());
        if let Some(&known) = self.names.fixed.get(&key) {
            return known;
        }
        let number = self.heap.strings.number(name);
        self.names.fixed.insert(key, number);
        number
    }

    /// Name of a field of which only the offset is known.
    pub(super) fn offset(&mut self, offset: u64) -> EdgeName {
        let number = match self.names.offsets.get(&offset) {
            Some(&known) => known,
            None => {
                let number = self.heap.strings.number(&format!("+{offset:#x}"));
                self.names.offsets.insert(offset, number);
                number
            }
        };
        EdgeName::text(EdgeKind::Internal, number)
    }

    /// Name of a word at an offset that leads inside of a block.
    pub(super) fn inside(&mut self, offset: u64) -> EdgeName {
        let number = match self.names.insides.get(&offset) {
            Some(&known) => known,
            None => {
                let number = self.heap.strings.number(&format!("+{offset:#x} (inside)"));
                self.names.insides.insert(offset, number);
                number
            }
        };
        EdgeName::text(EdgeKind::Internal, number)
    }

    /// Location of a line of a file, as a node has it.
    pub(super) fn place(&mut self, file: &str, line: u32) -> u32 {
        let place = Place { file: self.heap.strings.number(file), line };
        let count = self.heap.places.len() as u32;
        match self.names.places.entry(place) {
            std::collections::hash_map::Entry::Occupied(known) => *known.get(),
            std::collections::hash_map::Entry::Vacant(vacant) => {
                self.heap.places.push(place);
                *vacant.insert(count + 1)
            }
        }
    }

    /// File and line of a code object.
    pub(super) fn place_of_code(&mut self, code_avma: u64) -> Option<(String, u32)> {
        if self.types.at(type_of(self.pages, code_avma)?)?.form != Form::Code {
            return None;
        }
        let file_avma = self.pages.word(code_avma + self.layout.code_file)?;
        let file = self.types.text_at(file_avma, 4096)?;
        let line = self.pages.half(code_avma + self.layout.code_first_line)?;
        Some((file, line))
    }

    /// Name of a code object.
    pub(super) fn name_of_code(&self, code_avma: u64) -> Option<String> {
        let name_avma = self.pages.word(code_avma + self.layout.code_name)?;
        self.types.text_at(name_avma, NAME_CHARS_MAX)
    }

    /// Location of a type that a program made: that of its first function.
    pub(super) fn place_of_type(&mut self, of: &Type) -> u32 {
        let dict_avma = self.pages.word_or_zero(of.avma + objects::TYPE_DICT);
        let mut functions = Vec::new();
        if is_pointer(dict_avma) {
            super::dict::entries(self.pages, self.layout, dict_avma, |_, _, value| {
                if functions.len() < FUNCTIONS_MAX as usize
                    && is_pointer(value)
                    && type_of(self.pages, value)
                        .and_then(|type_avma| self.types.at(type_avma))
                        .is_some_and(|of| of.form == Form::Function)
                {
                    functions.push(value);
                }
            });
        }
        let codes = functions.into_iter().filter_map(|function| {
            self.pages.word(function + self.layout.function_code).filter(|&code| is_pointer(code))
        });
        let codes: Vec<u64> = codes.collect();
        let module = self.types.entry(dict_avma, "__module__").and_then(|avma| self.file_of_module(avma));
        let places: Vec<(String, u32)> =
            codes.into_iter().filter_map(|code| self.place_of_code(code)).collect();
        // Functions of other files were added later, or are inherited by copying.
        let own = places
            .iter()
            .filter(|(file, _)| module.as_deref().is_none_or(|module| module == file))
            .min_by_key(|(_, line)| *line);
        match (own, &module) {
            (Some((file, line)), _) => self.place(&file.clone(), *line),
            (None, Some(module)) => self.place(&module.clone(), 1),
            (None, None) => 0,
        }
    }

    /// File of the module with a name, given as a str object.
    fn file_of_module(&mut self, name_avma: u64) -> Option<String> {
        let name = self.types.text_at(name_avma, NAME_CHARS_MAX)?;
        if self.names.modules.is_none() {
            self.names.modules = Some(self.modules_by_name());
        }
        let module = *self.names.modules.as_ref()?.get(&name)?;
        self.file_of(module)
    }

    /// Modules of all interpreters by their names.
    fn modules_by_name(&self) -> FxHashMap<String, u64> {
        let mut found = FxHashMap::default();
        for &interpreter_avma in &self.runtime.interpreters {
            let modules = self.pages.word_or_zero(interpreter_avma + self.layout.modules);
            if !is_pointer(modules) {
                continue;
            }
            super::dict::entries(self.pages, self.layout, modules, |_, key, value| {
                let name = if is_pointer(key) { self.types.text_at(key, NAME_CHARS_MAX) } else { None };
                if let Some(name) = name.filter(|_| found.len() < MODULES_MAX) {
                    found.entry(name).or_insert(value);
                }
            });
        }
        found
    }

    /// Value of `__file__` of a module.
    pub(super) fn file_of(&self, module_avma: u64) -> Option<String> {
        let of = self.types.at(type_of(self.pages, module_avma)?)?;
        if of.form != Form::Module {
            return None;
        }
        let dict_avma = self.pages.word(module_avma + objects::MODULE_DICT)?;
        self.types.entry(dict_avma, "__file__").and_then(|avma| self.types.text_at(avma, 4096))
    }

    /// Name of a module.
    pub(super) fn name_of_module(&self, module_avma: u64) -> Option<String> {
        let dict_avma = self.pages.word(module_avma + objects::MODULE_DICT)?;
        self.types.entry(dict_avma, "__name__").and_then(|avma| self.types.text_at(avma, NAME_CHARS_MAX))
    }

    /// Whether an object is of a type that was made at run time, and holds it.
    pub(super) fn holds_its_type(of: &Type) -> bool {
        of.has(flag::HEAP_TYPE)
    }
}

fn is_identifier(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
}
