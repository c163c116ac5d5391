//! Names of objects and classes.

use std::rc::Rc;

use super::reader::Reader;
use super::values::{CLASS, CONTENTS, Kind, OWN_FLAGS_SHIFT, SINGLETON};
use crate::heap::{Label, NodeKind};
use crate::request::Contents;
use crate::ruby_dump::is_of_ruby;

/// Largest number of superclasses that are passed on the way to a class with a name.
const SUPERCLASSES_MAX: usize = 64;
const NAME_BYTES_MAX: u64 = 256;
/// Largest number of bytes of a text that is shown.
const TEXT_BYTES_MAX: u64 = 1024;
/// Variable in which Ruby 3.1 keeps the path of a class.
const PATH_VARIABLE: &str = "__classpath__";
/// Kinds of internal objects, by number.
const INTERNAL: [&str; 14] = [
    "env",
    "cref",
    "svar",
    "throw_data",
    "ifunc",
    "memo",
    "ment",
    "iseq",
    "tmpbuf",
    "ast",
    "parser_strterm",
    "callinfo",
    "callcache",
    "constcache",
];
pub(super) const CALL: usize = 11;
pub(super) const CALL_CACHE: usize = 12;
pub(super) const VARIABLES: usize = 0;
pub(super) const METHOD: usize = 6;
pub(super) const CODE: usize = 7;

/// Number of the kind of an internal object.
pub(super) fn internal_kind(flags: u64) -> usize {
    (flags >> OWN_FLAGS_SHIFT & 0xf) as usize
}

impl Reader<'_, '_> {
    /// Name of a class or module itself; `None` without one.
    pub(super) fn name_of_class(&mut self, avma: u64) -> Option<Rc<str>> {
        if let Some(known) = self.classes.own.get(&avma) {
            return known.clone();
        }
        let found = self.path_of(avma).and_then(|text| self.values.text(text, NAME_BYTES_MAX));
        // A class without a constant has a name by its address, if it was asked for one.
        let found: Option<Rc<str>> =
            found.filter(|name| !name.is_empty() && !name.starts_with('#')).map(Into::into);
        self.classes.own.insert(avma, found.clone());
        found
    }

    fn path_of(&self, avma: u64) -> Option<u64> {
        let rest = self.values.class_rest(avma);
        if let Some(offset) = self.values.layout.class_path {
            return Some(self.values.word(rest, offset));
        }
        let mut path = None;
        self.values.entries(self.values.word(rest, self.values.layout.class_variables), |id, value| {
            let is_path =
                || self.ids.name(self.values, super::ids::number_of(id)).as_deref() == Some(PATH_VARIABLE);
            if path.is_none() && self.slots.get(value).is_some() && is_path() {
                path = Some(value);
            }
        });
        path
    }

    /// Whether an object is a class of one object.
    pub(super) fn is_singleton(&self, avma: u64) -> bool {
        let flags = self.values.flags(avma);
        Kind::of(flags) == Kind::Class && flags & SINGLETON != 0
    }

    /// Name of the nearest class with a name, from a class up.
    pub(super) fn class_name(&mut self, class: u64) -> Option<Rc<str>> {
        let mut at = class;
        for _ in 0..SUPERCLASSES_MAX {
            self.slots.get(at)?;
            let is_plain = self.values.kind(at) == Kind::Class && !self.is_singleton(at);
            if is_plain && let Some(name) = self.name_of_class(at) {
                return Some(name);
            }
            at = self.values.word(at, CONTENTS);
        }
        None
    }

    /// Label of an object. The names are those that a dump's objects have.
    pub(super) fn label_of(&mut self, avma: u64) -> u32 {
        let flags = self.values.flags(avma);
        let kind = Kind::of(flags);
        let class = self.values.word(avma, CLASS);
        let (node_kind, name) = match kind {
            Kind::Text if self.request.contents == Contents::Strings => {
                let text = self.values.text(avma, TEXT_BYTES_MAX).unwrap_or_default();
                (NodeKind::Text, text)
            }
            Kind::Class if self.is_singleton(avma) => (NodeKind::Object, "singleton class".to_owned()),
            Kind::Class | Kind::Module => {
                let what = if kind == Kind::Class { "class" } else { "module" };
                let name = self.name_of_class(avma);
                if let Some(name) = name.as_deref().filter(|name| !is_of_ruby(name)) {
                    self.heap.program.insert(name.to_owned());
                }
                let shown = |name: Rc<str>| format!("{what} {name}");
                (NodeKind::Object, name.map_or_else(|| format!("unnamed {what}"), shown))
            }
            Kind::Included => (NodeKind::Code, "included module".to_owned()),
            Kind::Internal if internal_kind(flags) == VARIABLES => {
                (NodeKind::Store, "variables of a block".to_owned())
            }
            Kind::Internal => {
                let what = INTERNAL.get(internal_kind(flags)).copied().unwrap_or("object");
                (NodeKind::Code, format!("internal {what}"))
            }
            _ => return self.label_of_instance(avma, kind, class),
        };
        let name = self.heap.strings.number(&name);
        self.heap.label(Label { name, kind: node_kind, place: 0, class: 1 })
    }

    fn label_of_instance(&mut self, avma: u64, kind: Kind, class: u64) -> u32 {
        if let Some(&known) = self.classes.labels.get(&(class, kind)) {
            return known;
        }
        let named = self.class_name(class);
        let is_named = named.is_some();
        let name = match (named, kind) {
            (Some(name), _) => name.to_string(),
            (None, Kind::Data) => match self.values.structure(avma).0 {
                Some(name) => format!("native {name}"),
                None => "native".to_owned(),
            },
            (None, Kind::Text) => "String".to_owned(),
            (None, Kind::Array | Kind::Hash | Kind::Struct) => "internal collection".to_owned(),
            (None, _) if class != 0 => "object of an unnamed class".to_owned(),
            (None, _) => "internal object".to_owned(),
        };
        let name = self.heap.strings.number(&name);
        if matches!(kind, Kind::Array | Kind::Hash | Kind::Struct) {
            self.heap.collections.push(name);
        }
        let label = self.heap.label(Label { name, kind: NodeKind::Object, place: 0, class: 1 });
        // Native structures of no class have names of their own.
        if is_named || kind != Kind::Data {
            self.classes.labels.insert((class, kind), label);
        }
        label
    }
}
