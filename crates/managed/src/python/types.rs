//! Types of objects: names, sizes, and the form of their fields.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::dict;
use super::objects::{self, flag, is_pointer, type_of};
use super::runtime::Runtime;
use super::text::Text;
use crate::pages::Pages;
use heapr_known::cpython::Layout;

/// Largest number of steps from a type up to the type of all types.
const UP_MAX: u32 = 6;
/// Largest number of bases that are followed.
const BASES_MAX: u32 = 64;
/// Largest number of cached types; further ones are read each time.
const TYPES_MAX: usize = 1 << 20;
/// Number of slots for addresses without a type; a power of two.
const OTHERS_SLOTS: usize = 1 << 14;
const NAME_BYTES_MAX: usize = 512;
const MEMBERS_MAX: u64 = 256;
const MEMBER_BYTES: u64 = 40;
/// Kinds of members that are references.
const MEMBER_OBJECTS: [u32; 2] = [6, 16];
/// Largest size of an object without its items.
const BASIC_BYTES_MAX: u64 = 1 << 16;

/// Form of the fields of a builtin type; those of other types are found word by word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Form {
    Plain,
    Int,
    Text,
    Bytes,
    List,
    Tuple,
    Dict,
    Type,
    Set,
    Function,
    Module,
    Deque,
    Frame,
    Generator,
    ByteArray,
    Array,
    NdArray,
    Weak,
    Code,
}

/// Builtin types by their names, apart from those that flags show.
const FORMS: &[(&str, Form)] = &[
    ("set", Form::Set),
    ("frozenset", Form::Set),
    ("function", Form::Function),
    ("module", Form::Module),
    ("collections.deque", Form::Deque),
    ("frame", Form::Frame),
    ("generator", Form::Generator),
    ("coroutine", Form::Generator),
    ("async_generator", Form::Generator),
    ("bytearray", Form::ByteArray),
    ("array.array", Form::Array),
    ("numpy.ndarray", Form::NdArray),
    ("weakref", Form::Weak),
    ("weakref.ReferenceType", Form::Weak),
    ("weakproxy", Form::Weak),
    ("weakref.ProxyType", Form::Weak),
    ("weakcallableproxy", Form::Weak),
    ("weakref.CallableProxyType", Form::Weak),
    ("code", Form::Code),
];

/// A type.
#[derive(Debug)]
pub(super) struct Type {
    pub(super) avma: u64,
    /// Name with its module: `pricing.Quote`.
    pub(super) name: String,
    pub(super) form: Form,
    /// Bytes of the builtin type that has the form; fields of its heirs begin there.
    pub(super) form_bytes: u64,
    pub(super) basic_bytes: u64,
    pub(super) item_bytes: u64,
    pub(super) flags: u64,
    pub(super) dict_offset: i64,
    pub(super) weak_offset: i64,
    /// Names of fields that are references, by offset.
    pub(super) members: Vec<(u64, String)>,
    pub(super) cached_keys: u64,
}

impl Type {
    pub(super) fn has(&self, flags: u64) -> bool {
        self.flags & flags != 0
    }

    /// Bytes before an object of the type.
    pub(super) fn bytes_before(&self) -> u64 {
        let collector = if self.has(flag::COLLECTED) { objects::COLLECTOR_BYTES } else { 0 };
        let managed =
            if self.has(flag::MANAGED_DICT | flag::MANAGED_WEAK) { objects::MANAGED_BYTES } else { 0 };
        collector + managed
    }
}

/// Cache of the types of a process.
#[derive(Debug)]
pub(super) struct Types<'p, 'm> {
    pages: &'p Pages<'m>,
    layout: &'p Layout,
    type_type: u64,
    known: RefCell<FxHashMap<u64, Rc<Type>>>,
    /// Addresses without a type, each in the slot of its low bits: the last one that was asked for.
    others: Vec<Cell<u64>>,
    last: RefCell<Option<Rc<Type>>>,
}

impl<'p, 'm> Types<'p, 'm> {
    pub(super) fn of(pages: &'p Pages<'m>, runtime: &'p Runtime) -> Self {
        Self {
            pages,
            layout: &runtime.layout,
            type_type: runtime.type_type,
            known: RefCell::default(),
            others: vec![Cell::new(0); OTHERS_SLOTS],
            last: RefCell::default(),
        }
    }

    /// Returns the type at an address, if one is there.
    pub(super) fn at(&self, type_avma: u64) -> Option<Rc<Type>> {
        if !is_pointer(type_avma) {
            return None;
        }
        if let Some(last) = &*self.last.borrow()
            && last.avma == type_avma
        {
            return Some(Rc::clone(last));
        }
        if let Some(known) = self.known.borrow().get(&type_avma) {
            *self.last.borrow_mut() = Some(Rc::clone(known));
            return Some(Rc::clone(known));
        }
        let other = &self.others[(type_avma >> 3) as usize % OTHERS_SLOTS];
        if other.get() == type_avma {
            return None;
        }
        let found = if self.is_type(type_avma) { self.read(type_avma).map(Rc::new) } else { None };
        match &found {
            Some(found) if self.known.borrow().len() < TYPES_MAX => {
                self.known.borrow_mut().insert(type_avma, Rc::clone(found));
            }
            Some(_) => {}
            None => other.set(type_avma),
        }
        found
    }

    /// Whether the address has a type: its type is one in turn, up to the type of all types.
    fn is_type(&self, type_avma: u64) -> bool {
        let mut at_avma = type_avma;
        for _ in 0..UP_MAX {
            let Some(above) = type_of(self.pages, at_avma).filter(|&above| is_pointer(above)) else {
                return false;
            };
            let flags = self.pages.word_or_zero(above + objects::TYPE_FLAGS);
            if flags & flag::TYPE == 0 {
                return false;
            }
            if above == self.type_type {
                return self.pages.word(at_avma).is_some_and(objects::is_count);
            }
            at_avma = above;
        }
        false
    }

    fn read(&self, type_avma: u64) -> Option<Type> {
        let word = |offset: u64| self.pages.word(type_avma + offset);
        let (basic_bytes, item_bytes) = (word(objects::TYPE_BASIC_BYTES)?, word(objects::TYPE_ITEM_BYTES)?);
        let flags = word(objects::TYPE_FLAGS)?;
        if !(objects::HEAD_BYTES..=BASIC_BYTES_MAX).contains(&basic_bytes) || item_bytes > BASIC_BYTES_MAX {
            return None;
        }
        let plain = self.pages.text(word(objects::TYPE_NAME)?, NAME_BYTES_MAX)?;
        let is_made = flags & flag::HEAP_TYPE != 0;
        let name = if is_made && !plain.contains('.') { self.made_name(type_avma, &plain) } else { plain };
        let mut found = Type {
            avma: type_avma,
            name,
            form: Form::Plain,
            form_bytes: objects::HEAD_BYTES,
            basic_bytes,
            item_bytes,
            flags,
            dict_offset: word(objects::TYPE_DICT_OFFSET)? as i64,
            weak_offset: word(objects::TYPE_WEAK_OFFSET)? as i64,
            members: Vec::new(),
            cached_keys: if is_made { word(self.layout.type_cached_keys).unwrap_or(0) } else { 0 },
        };
        self.follow_bases(&mut found);
        Some(found)
    }

    /// Name of a type that a program made: module, and the name within it.
    fn made_name(&self, type_avma: u64, plain: &str) -> String {
        let text = |avma: u64| {
            self.text_at(avma, NAME_BYTES_MAX as u64).filter(|text| !text.is_empty() && !text.contains('\0'))
        };
        let qualified = self
            .pages
            .word(type_avma + self.layout.type_qualified_name)
            .and_then(text)
            .unwrap_or_else(|| plain.to_owned());
        let dict_avma = self.pages.word_or_zero(type_avma + objects::TYPE_DICT);
        match self.entry(dict_avma, "__module__").and_then(text) {
            Some(module) if module != "builtins" => format!("{module}.{qualified}"),
            _ => qualified,
        }
    }

    /// Finds the form, and the names of fields, from the type and its bases.
    fn follow_bases(&self, found: &mut Type) {
        let pages = self.pages;
        let mut at_avma = found.avma;
        for _ in 0..BASES_MAX {
            let basic_bytes = pages.word_or_zero(at_avma + objects::TYPE_BASIC_BYTES).min(BASIC_BYTES_MAX);
            let name =
                pages.word(at_avma + objects::TYPE_NAME).and_then(|name| pages.text(name, NAME_BYTES_MAX));
            if found.form == Form::Plain
                && let Some(&(_, form)) =
                    FORMS.iter().find(|(known, _)| name.as_deref().is_some_and(|name| name == *known))
            {
                found.form = form;
                found.form_bytes = basic_bytes;
            }
            self.read_members(at_avma, &mut found.members);
            let base = pages.word_or_zero(at_avma + objects::TYPE_BASE);
            let flags = pages.word_or_zero(at_avma + objects::TYPE_FLAGS);
            let by_flag = form_of_flags(flags);
            // The last type of a line that has the flag is the builtin one.
            let is_last = by_flag != Form::Plain
                && (!is_pointer(base)
                    || form_of_flags(pages.word_or_zero(base + objects::TYPE_FLAGS)) != by_flag);
            if is_last && found.form == Form::Plain {
                found.form = by_flag;
                found.form_bytes = basic_bytes;
            }
            if !is_pointer(base) {
                break;
            }
            at_avma = base;
        }
    }

    fn read_members(&self, type_avma: u64, members: &mut Vec<(u64, String)>) {
        let first_avma = self.pages.word_or_zero(type_avma + objects::TYPE_MEMBERS);
        if !is_pointer(first_avma) {
            return;
        }
        for number in 0..MEMBERS_MAX {
            if members.len() as u64 >= MEMBERS_MAX {
                return;
            }
            let at_avma = first_avma + number * MEMBER_BYTES;
            let Some(name_avma) = self.pages.word(at_avma).filter(|&name| name != 0) else { return };
            let kind = self.pages.half(at_avma + 8).unwrap_or(0);
            let offset = self.pages.word_or_zero(at_avma + 16);
            if MEMBER_OBJECTS.contains(&kind)
                && offset < BASIC_BYTES_MAX
                && !members.iter().any(|(known, _)| *known == offset)
                && let Some(name) = self.pages.text(name_avma, NAME_BYTES_MAX)
            {
                members.push((offset, name));
            }
        }
    }

    /// Text of a str object of at most `most` characters.
    pub(super) fn text_at(&self, avma: u64, most: u64) -> Option<String> {
        let flags = type_of(self.pages, avma)
            .filter(|&it| is_pointer(it))
            .and_then(|it| self.pages.word(it + objects::TYPE_FLAGS))?;
        if flags & flag::TEXT == 0 {
            return None;
        }
        Text::at(self.pages, avma)?.read_whole(self.pages, self.layout, avma, most)
    }

    /// Whether a str object has this text. The length is compared before the characters.
    fn is_text(&self, avma: u64, wanted: &str) -> bool {
        Text::at(self.pages, avma).is_some_and(|text| text.has_length(wanted.chars().count() as u64))
            && self.text_at(avma, wanted.len() as u64).as_deref() == Some(wanted)
    }

    /// Value of a key in a dict.
    pub(super) fn entry(&self, dict_avma: u64, wanted: &str) -> Option<u64> {
        let mut found = None;
        if is_pointer(dict_avma) {
            dict::entries_while(self.pages, self.layout, dict_avma, |_, key, value| {
                if is_pointer(key) && self.is_text(key, wanted) {
                    found = Some(value);
                }
                found.is_none()
            });
        }
        found
    }
}

fn form_of_flags(flags: u64) -> Form {
    [
        (flag::INT, Form::Int),
        (flag::TEXT, Form::Text),
        (flag::BYTES, Form::Bytes),
        (flag::LIST, Form::List),
        (flag::TUPLE, Form::Tuple),
        (flag::DICT, Form::Dict),
        (flag::TYPE, Form::Type),
    ]
    .into_iter()
    .find(|(flag, _)| flags & flag != 0)
    .map_or(Form::Plain, |(_, form)| form)
}
