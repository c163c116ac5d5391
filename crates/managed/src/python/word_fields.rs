//! Fields of types that have no form of their own: each word that is exactly an object.

use std::rc::Rc;

use super::objects::{self, flag, type_of};
use super::reader::Reader;
use super::types::{Form, Type};
use crate::error::Result;
use crate::heap::{EdgeKind, EdgeName};

/// Size in bytes of a type that no program made.
const STATIC_TYPE_BYTES: u64 = 408;
/// Types whose first two fields are links that hold nothing.
const LINKED: [&str; 2] = ["functools._lru_list_elem", "functools._lru_cache_wrapper"];
/// End of these links.
const LINKS_END: u64 = 32;

impl Reader<'_, '_> {
    /// Adds all words of an object's fields that are objects, with the names that its type has for
    /// them.
    pub(super) fn read_words(&mut self, node: u32, avma: u64, of: &Rc<Type>) -> Result<()> {
        let first = match of.form {
            Form::Plain | Form::Function | Form::Code => objects::HEAD_BYTES,
            // All but the dict, which was read.
            Form::Type => objects::HEAD_BYTES,
            _ => of.form_bytes,
        };
        let is_linked = LINKED.contains(&of.name.as_str());
        let is_static_type =
            of.form == Form::Type && self.types.at(avma).is_none_or(|it| !it.has(flag::HEAP_TYPE));
        let end = if is_static_type { STATIC_TYPE_BYTES } else { of.basic_bytes / 8 * 8 };
        if !self.pages.spend(end.saturating_sub(first) / 8) {
            return Ok(());
        }
        for offset in (first.next_multiple_of(8)..end).step_by(8) {
            let is_other = offset as i64 == of.weak_offset
                || offset as i64 == of.dict_offset
                || is_linked && offset < LINKS_END
                || of.form == Form::Type && offset == objects::TYPE_DICT;
            if is_other {
                continue;
            }
            let word = self.pages.word_or_zero(avma + offset);
            if word == 0 {
                continue;
            }
            let found = match self.node_at(word)? {
                Some(object) => Some(object),
                None => self.block_at(word)?,
            };
            let Some(target) = found else {
                self.note_inside(node, word, offset)?;
                continue;
            };
            let name = self.name_of_field(of, offset, word);
            self.push_edge(target, name)?;
        }
        if of.form == Form::Plain && of.item_bytes == 8 && of.dict_offset >= 0 {
            let count = self.item_bytes(avma, of) / 8;
            self.read_items(avma + end, count)?;
        }
        Ok(())
    }

    fn name_of_field(&mut self, of: &Type, offset: u64, word: u64) -> EdgeName {
        if let Some((_, name)) = of.members.iter().find(|(at, _)| *at == offset) {
            let kind = if name.starts_with("__") { EdgeKind::Internal } else { EdgeKind::Attribute };
            return EdgeName::text(kind, self.heap.strings.number(name));
        }
        let is_dict = || {
            type_of(self.pages, word).and_then(|it| self.types.at(it)).is_some_and(|it| it.form == Form::Dict)
        };
        let by_hand = match (of.name.as_str(), offset) {
            ("cell", 16) => Some("cell_contents"),
            ("traceback", 16) => Some("tb_next"),
            ("functools._lru_cache_wrapper", _) if is_dict() => Some("cache"),
            ("_thread._local", _) if is_dict() => Some("(of each thread)"),
            (_, objects::TYPE_BASE) if of.form == Form::Type => Some("__base__"),
            _ if of.has(1 << 30) => name_of_exceptions_field(self.layout.version, offset),
            _ => None,
        };
        match by_hand {
            Some(name) => self.internal(name),
            None => self.offset(offset),
        }
    }
}

/// Field of an exception by its offset.
fn name_of_exceptions_field(version: u32, offset: u64) -> Option<&'static str> {
    const FIELDS: [&str; 5] = ["args", "__notes__", "__traceback__", "__context__", "__cause__"];
    let number = (offset.checked_sub(24)? / 8) as usize;
    match (version, number) {
        (0x030b.., _) | (_, 0) => FIELDS.get(number).copied(),
        _ => FIELDS.get(number + 1).copied(),
    }
}
