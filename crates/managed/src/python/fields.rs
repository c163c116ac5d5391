//! References and sizes of objects, by the form of their types.

use rustc_hash::FxHashSet;

use super::dict::{self, DICT_USED, Keys};
use super::objects::{self, MODULE_DICT, flag, is_pointer, type_of};
use super::reader::Reader;
use super::text::Text;
use super::types::{Form, Type};
use crate::error::Result;
use crate::heap::{EdgeName, Label, NodeKind};
use crate::request::Contents;

/// Name of the table of names, which is no collection of the program.
const TABLE_OF_NAMES: &str = "(table of names)";
/// Number of names of the smallest such table.
const TABLE_OF_NAMES_LEAST: usize = 256;
const MODULE_DEFINITION: u64 = 24;
pub(super) const MODULE_STATE: u64 = 32;
const DEFINITION_STATE_BYTES: u64 = 56;
/// Largest size of a module's state that is searched.
const STATE_BYTES_MAX: u64 = 1 << 20;
pub(super) const ITEMS: u64 = 24;
const LIST_ALLOCATED: u64 = 32;
const SET_MASK: u64 = 32;
pub(super) const SET_TABLE: u64 = 40;
const SET_ENTRY_BYTES: u64 = 16;
pub(super) const DEQUE_FIRST_BLOCK: u64 = 24;
const DEQUE_FIRST_INDEX: u64 = 40;
pub(super) const DEQUE_BLOCK_BYTES: u64 = 528;
const DEQUE_BLOCK_ITEMS: u64 = 64;
const WEAK_OBJECT: u64 = 16;
const WEAK_CALLBACK: u64 = 24;
/// State of a text, and its bits that are set if the interpreter keeps the text once.
const TEXT_STATE: u64 = 32;
const TEXT_INTERNED: u64 = 3;
/// Largest number of characters of a text that are written.
const TEXT_CHARS_MAX: u64 = 1024;
/// Largest block of a pool, and the unit of its size.
const SMALL_BLOCK_BYTES: u64 = 512;
const UNIT_BYTES: u64 = 16;
/// Largest table of the keys that a class's instances share; bounds false sizes.
const CACHED_KEYS_BYTES_MAX: u64 = 1 << 20;
/// Largest size of one object; bounds false sizes.
const OBJECT_BYTES_MAX: u64 = 1 << 46;

impl Reader<'_, '_> {
    /// Adds the references of a node, and sets its size and what it is called.
    pub(super) fn read_fields(&mut self, node: u32) -> Result<()> {
        let facts = self.heap.nodes[node as usize];
        let avma = facts.address_avma;
        if self.heap.label_of(&facts).kind == NodeKind::Block {
            return self.read_block(node);
        }
        let Some(of) = self.type_of_node(node) else { return Ok(()) };
        // The size of the type of texts is that of one that is not compact.
        let basic_bytes = match of.form {
            Form::Text => of.basic_bytes.saturating_sub(of.form_bytes),
            _ => of.basic_bytes,
        };
        let field_bytes = match of.form {
            Form::Text => self.read_text(node, avma),
            Form::Int | Form::Bytes => self.item_bytes(avma, &of),
            Form::Dict => self.read_dict(node, avma)?,
            Form::List => self.read_list(avma)?,
            Form::Tuple => self.read_tuple(avma)?,
            Form::Set => self.read_set(avma)?,
            Form::Deque => self.read_deque(avma)?,
            Form::Module => self.read_module(node, avma)?,
            Form::Type => self.read_type(node, avma)?,
            Form::Weak => self.read_weak(avma)?,
            Form::Frame => self.read_frame_object(node, avma)?,
            Form::Generator => self.read_generator(avma, &of)?,
            Form::ByteArray | Form::Array | Form::NdArray => self.read_data(node, avma, &of)?,
            Form::Function => self.call_function(node, avma),
            Form::Code | Form::Plain => self.item_bytes(avma, &of),
        };
        let head_bytes = of.bytes_before() + basic_bytes;
        let mut own_bytes = head_bytes + field_bytes;
        // Items of these lie in a block of their own.
        let is_apart = matches!(of.form, Form::Dict | Form::List | Form::Set | Form::Type);
        self.count_rounding(avma, if is_apart { head_bytes } else { own_bytes });
        self.count_rounding(avma, if is_apart { field_bytes } else { 0 });
        self.read_words(node, avma, &of)?;
        self.read_thread_local(node, avma, &of)?;
        // A type's own attributes were read with it.
        if !matches!(of.form, Form::Module | Form::Type) {
            let value_bytes = self.read_attributes(node, avma, &of)?;
            own_bytes += value_bytes;
            self.count_rounding(avma, value_bytes);
        }
        if Self::holds_its_type(&of) {
            let name = self.internal("__class__");
            self.refer(of.avma, name)?;
        }
        self.heap.set_own_bytes(node, own_bytes.min(OBJECT_BYTES_MAX));
        let identity = self.identity_of(avma, &of);
        self.heap.set_identity(node, identity);
        Ok(())
    }

    /// Counts what the allocator of small blocks adds to a block of an object in a pool.
    fn count_rounding(&mut self, avma: u64, block_bytes: u64) {
        if block_bytes <= SMALL_BLOCK_BYTES && self.map.is_in_pool(avma) {
            self.heap.rounding_bytes += block_bytes.next_multiple_of(UNIT_BYTES) - block_bytes;
        }
    }

    /// Bytes of the items behind an object's fields.
    pub(super) fn item_bytes(&self, avma: u64, of: &Type) -> u64 {
        if of.item_bytes == 0 {
            return 0;
        }
        let word = self.pages.word_or_zero(avma + objects::SIZE);
        let count = match of.form {
            // From 3.12 on the lowest three bits are flags.
            Form::Int if self.layout.version >= 0x030c => word >> 3,
            _ => (word as i64).unsigned_abs(),
        };
        count.saturating_mul(of.item_bytes).min(OBJECT_BYTES_MAX)
    }

    fn read_text(&mut self, node: u32, avma: u64) -> u64 {
        let Some(text) = Text::at(self.pages, avma) else { return 0 };
        if self.request.contents == Contents::Strings
            && let Some(read) = text.read(self.pages, self.layout, avma, TEXT_CHARS_MAX)
        {
            let name = self.heap.strings.number(&read);
            self.heap.relabel(node, |label| {
                label.name = name;
                label.kind = NodeKind::Text;
            });
        }
        text.bytes(self.layout).min(OBJECT_BYTES_MAX)
    }

    fn read_dict(&mut self, node: u32, avma: u64) -> Result<u64> {
        let mut found = Vec::new();
        let is_folded = self.folded.contains_key(&node);
        let bytes = dict::entries(self.pages, self.layout, avma, |number, key, value| {
            if !is_folded {
                found.push((number, key, value));
            }
        });
        // The table of all names that the interpreter shares holds none of them.
        let is_name = |&(_, key, value): &(u64, u64, u64)| key == value && self.is_shared_name(key);
        let is_table_of_names =
            found.len() > TABLE_OF_NAMES_LEAST && found.iter().take(TABLE_OF_NAMES_LEAST).all(is_name);
        if is_table_of_names {
            let name = self.heap.strings.number(TABLE_OF_NAMES);
            self.heap.relabel(node, |label| label.name = name);
        }
        if is_folded || is_table_of_names {
            return Ok(bytes);
        }
        let used = self.pages.word_or_zero(avma + DICT_USED);
        let key_name = self.internal("key");
        for (number, key, value) in found {
            self.refer(key, key_name)?;
            let name = self.key(key, used, number);
            self.refer(value, name)?;
        }
        Ok(bytes)
    }

    /// Whether an object is a text that the interpreter keeps once.
    fn is_shared_name(&self, avma: u64) -> bool {
        let is_text = type_of(self.pages, avma)
            .and_then(|of| self.types.at(of))
            .is_some_and(|of| of.form == Form::Text);
        is_text && self.pages.word_or_zero(avma + TEXT_STATE) & TEXT_INTERNED != 0
    }

    /// Adds references from consecutive words as items.
    pub(super) fn read_items(&mut self, first_avma: u64, count: u64) -> Result<()> {
        for number in 0..count {
            let word = number
                .checked_mul(8)
                .and_then(|at| first_avma.checked_add(at))
                .and_then(|at| self.pages.word(at));
            let Some(word) = word.filter(|_| self.pages.spend(1)) else { break };
            self.refer(word, EdgeName::item(number))?;
        }
        Ok(())
    }

    fn read_list(&mut self, avma: u64) -> Result<u64> {
        let word = |offset: u64| self.pages.word_or_zero(avma + offset);
        let (count, items_avma, allocated) = (word(objects::SIZE), word(ITEMS), word(LIST_ALLOCATED));
        if !is_pointer(items_avma) {
            return Ok(0);
        }
        // A list that is being sorted has no room of its own.
        let count = if allocated > OBJECT_BYTES_MAX / 8 { 0 } else { count.min(allocated) };
        self.read_items(items_avma, count)?;
        Ok(allocated.min(OBJECT_BYTES_MAX / 8) * 8)
    }

    fn read_tuple(&mut self, avma: u64) -> Result<u64> {
        let count = self.pages.word_or_zero(avma + objects::SIZE).min(OBJECT_BYTES_MAX / 8);
        self.read_items(avma + self.layout.tuple_items, count)?;
        Ok(count * 8)
    }

    fn read_set(&mut self, avma: u64) -> Result<u64> {
        let (mask, table_avma) =
            (self.pages.word_or_zero(avma + SET_MASK), self.pages.word_or_zero(avma + SET_TABLE));
        if !is_pointer(table_avma) || mask > 1 << 36 {
            return Ok(0);
        }
        let mut position = 0;
        for number in 0..=mask {
            let at_avma = table_avma + number * SET_ENTRY_BYTES;
            let (Some(key), Some(hash)) = (self.pages.word(at_avma), self.pages.word(at_avma + 8)) else {
                break;
            };
            if !self.pages.spend(1) {
                break;
            }
            if key != 0 && hash != u64::MAX && self.refer(key, EdgeName::item(position))? {
                position += 1;
            }
        }
        let is_inside = (avma..avma + 256).contains(&table_avma);
        Ok(if is_inside { 0 } else { (mask + 1) * SET_ENTRY_BYTES })
    }

    fn read_deque(&mut self, avma: u64) -> Result<u64> {
        let mut block_avma = self.pages.word_or_zero(avma + DEQUE_FIRST_BLOCK);
        let mut index = self.pages.word_or_zero(avma + DEQUE_FIRST_INDEX);
        let count = self.pages.word_or_zero(avma + objects::SIZE);
        let mut seen = FxHashSet::from_iter([block_avma]);
        for number in 0..count {
            if index >= DEQUE_BLOCK_ITEMS {
                block_avma = self.pages.word_or_zero(block_avma.wrapping_add(DEQUE_BLOCK_BYTES - 8));
                index = 0;
                // Blocks that lead around were changed meanwhile.
                if !seen.insert(block_avma) {
                    break;
                }
            }
            let Some(word) = Some(block_avma)
                .filter(|&block| is_pointer(block) && self.pages.spend(1))
                .and_then(|block| self.pages.word(block + 8 + index * 8))
            else {
                break;
            };
            self.refer(word, EdgeName::item(number))?;
            index += 1;
        }
        Ok(seen.len() as u64 * DEQUE_BLOCK_BYTES)
    }

    fn read_module(&mut self, node: u32, avma: u64) -> Result<u64> {
        if let Some(name) = self.name_of_module(avma) {
            let name = self.heap.strings.number(&format!("module {name}"));
            self.heap.relabel(node, |label| label.name = name);
        }
        if let Some(file) = self.file_of(avma) {
            let place = self.place(&file, 1);
            self.heap.relabel(node, |label| label.place = place);
        }
        self.read_namespace(node, avma + MODULE_DICT)?;
        let definition = self.pages.word_or_zero(avma + MODULE_DEFINITION);
        let state_avma = self.pages.word_or_zero(avma + MODULE_STATE);
        let bytes = if is_pointer(definition) {
            self.pages.word_or_zero(definition + DEFINITION_STATE_BYTES)
        } else {
            0
        };
        if is_pointer(state_avma) && bytes <= STATE_BYTES_MAX {
            let name = self.internal("(state)");
            for offset in (0..bytes).step_by(8).take_while(|_| self.pages.spend(1)) {
                let word = self.pages.word_or_zero(state_avma + offset);
                self.refer(word, name)?;
            }
        }
        Ok(0)
    }

    /// Adds the dict that a word leads to, and its entries as attributes.
    fn read_namespace(&mut self, node: u32, at_avma: u64) -> Result<()> {
        let dict_avma = self.pages.word_or_zero(at_avma);
        if !is_pointer(dict_avma) {
            return Ok(());
        }
        let name = self.internal("__dict__");
        self.refer(dict_avma, name)?;
        if self.owner_of(dict_avma) == Some(node) {
            self.read_folded_namespace(dict_avma)?;
        }
        Ok(())
    }

    fn read_type(&mut self, node: u32, avma: u64) -> Result<u64> {
        let mut keys_bytes = 0;
        if let Some(of) = self.types.at(avma) {
            // Names of its instances' attributes, once for all instances.
            keys_bytes = Keys::at(self.pages, self.layout, of.cached_keys)
                .map(|keys| keys.bytes)
                .filter(|&bytes| bytes <= CACHED_KEYS_BYTES_MAX)
                .unwrap_or(0);
            let name = self.heap.strings.number(&format!("class {}", of.name));
            let made_at = if of.has(flag::HEAP_TYPE) { Some(self.place_of_type(&of)) } else { None };
            self.heap.relabel(node, |label| {
                label.name = name;
                label.place = made_at.unwrap_or(label.place);
            });
        }
        self.read_namespace(node, avma + objects::TYPE_DICT)?;
        Ok(keys_bytes)
    }

    fn read_weak(&mut self, avma: u64) -> Result<u64> {
        let object = self.weak("(weak)");
        let callback = self.internal("__callback__");
        let [weak, strong] =
            [WEAK_OBJECT, WEAK_CALLBACK].map(|offset| self.pages.word_or_zero(avma + offset));
        self.refer(weak, object)?;
        self.refer(strong, callback)?;
        Ok(0)
    }

    fn call_function(&mut self, node: u32, avma: u64) -> u64 {
        let name_avma = self.pages.word_or_zero(avma + self.layout.function_name);
        let name = self.types.text_at(name_avma, super::names::NAME_CHARS_MAX);
        let code_avma = self.pages.word_or_zero(avma + self.layout.function_code);
        let place = if is_pointer(code_avma) { self.place_of_code(code_avma) } else { None };
        let place = place.map_or(0, |(file, line)| self.place(&file, line));
        let name = name.map(|name| self.heap.strings.number(&name));
        self.heap.relabel(node, |label| {
            *label = Label { name: name.unwrap_or(label.name), kind: NodeKind::Function, place, ..*label };
        });
        0
    }
}
