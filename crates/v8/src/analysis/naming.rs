//! Names for objects as a programmer would say them: `MemoryStore.sessions`, the variable `cache`
//! in app.js.

mod other_languages;
mod places;
mod program_holders;
mod telling_edge;
mod texts;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::modules;
use super::scripts::{Place, place_of};
use super::storage::{is_dictionary, is_of_the_engine};
use crate::objects::ScriptPaths;
use crate::objects::{EdgeName, Objects};
use crate::{EdgeKind, NodeKind};
use places::ContextPlace;
use program_holders::Holder;
use texts::{is_generic_class, joined, shortened};

pub(super) use texts::is_global_class;

/// Largest number of fields in a name. The end of a longer name says more than its beginning.
const MAX_FIELDS_IN_NAME: usize = 6;
/// Largest number of holders passed while a name is made. Holders without a field name may form a
/// cycle.
const MAX_HOLDERS_OF_A_NAME: usize = 64;

/// Names objects by what holds them.
#[derive(Debug)]
pub struct Naming<'a, H: ?Sized> {
    heap: &'a H,
    scripts: ScriptPaths,
    /// Cached source locations of contexts: thousands of owners can be variables of one module.
    places_of_contexts: Mutex<HashMap<u32, Option<ContextPlace>>>,
    edges_of_popular: Mutex<HashMap<u32, Option<u32>>>,
}

/// Progress of a name on the path up from an object.
#[derive(Debug, Clone)]
struct Way {
    at: u32,
    /// Field names so far, the innermost first.
    fields: Vec<String>,
    /// Context of the last field, if that field is a variable.
    context: Option<u32>,
}

/// Name and source location of an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// Name, such as `MemoryStore.sessions`, `cache (variable in /srv/app.js)` or
    /// `globalThis.history`.
    pub text: String,
    /// Fields from the named holder down to the object, the outermost first.
    pub fields: Vec<String>,
    /// Class, script or root that the name begins with.
    pub base: String,
    /// Whether the fields begin with a variable of the script that is the base.
    pub is_variable: bool,
    /// Node that the name begins with.
    pub base_node: u32,
    /// Source location of the base's constructor, function or module. If the base belongs to a
    /// package or the runtime: the location of the program's own holder.
    pub place: Option<Place>,
    /// Program's name for the holder of the base, if the base is an object of a package or the
    /// runtime: `EventLog.entries`, `render (variable in /srv/app.js)`.
    pub part_of: Option<String>,
    /// Whether the base is, or belongs to, a class that is known as the program's by its name.
    pub is_of_program_class: bool,
    /// Class of the object, in heaps of languages where an attribute's name says little without it.
    pub class: Option<String>,
    /// True if the base is an object of the runtime that only the runtime is known to hold.
    pub is_held_by_the_runtime: bool,
}

impl Called {
    /// Returns the whole name of the object, or of its field: `Hash.__data__ of render (variable in
    /// …)`.
    pub fn whole(&self, field: Option<&str>) -> String {
        if let Some(class) = &self.class {
            return match field {
                // The name ends with the class already, or is that of the class.
                None if self.text.ends_with(&format!("({class})")) || self.text == *class => {
                    self.text.clone()
                }
                None => format!("{} ({class})", self.text),
                Some(field) if self.fields.is_empty() => format!("{}: {field}", self.base),
                Some(field) if field.starts_with('[') => format!("{}{field}", self.text),
                Some(field) => format!("{}.{field}", self.text),
            };
        }
        let named = match field {
            None => self.text.clone(),
            Some(field) if self.is_variable => match self.fields.as_slice() {
                [] => format!("{field} (variable in {})", self.base),
                fields => format!("{}.{field} (variable in {})", joined(fields), self.base),
            },
            Some(field) => format!("{}.{field}", self.text),
        };
        match &self.part_of {
            Some(holder) => format!("{named} of {holder}"),
            None if self.is_held_by_the_runtime => format!("{named} (held by the runtime)"),
            None => named,
        }
    }

    /// Whether the base belongs to the program's code, as far as the snapshot shows.
    pub(crate) fn is_of_the_program(&self) -> bool {
        self.is_of_program_class
            || self.place.as_ref().is_some_and(|place| !place.is_of_the_runtime())
            || self.base == "globalThis"
                && self.fields.first().is_some_and(|first| !first.starts_with("<symbol"))
    }
}

impl<'a, H: Objects + ?Sized> Naming<'a, H> {
    /// Prepares names for objects of `heap`.
    pub fn of(heap: &'a H) -> Self {
        Self {
            heap,
            scripts: heap.script_paths(),
            places_of_contexts: Mutex::default(),
            edges_of_popular: Mutex::default(),
        }
    }

    /// Heap whose objects are named.
    pub fn heap(&self) -> &'a H {
        self.heap
    }

    /// Returns the name of `node`.
    pub fn call(&self, node: u32) -> Called {
        if self.heap.meta().dialect.is_some() {
            return self.call_in_other_language(node);
        }
        let mut way = Way { at: node, fields: Vec::new(), context: None };
        for _ in 0..MAX_HOLDERS_OF_A_NAME {
            let is_told = way.fields.len() >= MAX_FIELDS_IN_NAME
                || way.context.is_some()
                || self.has_own_name(way.at)
                || self.is_context(way.at)
                || modules::builtin_of_exports(self.heap, way.at).is_some();
            if is_told || !self.go_up(&mut way) {
                break;
            }
        }
        if modules::builtin_of_exports(self.heap, way.at).is_some() {
            return self.called(way);
        }
        // A class of the runtime says what kind of object it is; the program's own name says whose
        // it is.
        if self.is_of_the_runtime(&way)
            && let Some(called) = self.called_by_the_program(&way)
        {
            return called;
        }
        let holder = self.holder_of_base(&way);
        let mut called = self.called(way);
        match holder {
            Holder::Program(holder) => {
                called.place = holder.place.or(called.place);
                called.part_of = Some(holder.text);
            }
            Holder::Runtime => called.is_held_by_the_runtime = true,
            Holder::Unknown => {}
        }
        called
    }

    /// Moves `way` to the next holder. Returns false if no edge leads further up.
    fn go_up(&self, way: &mut Way) -> bool {
        if let Some((name, context)) = modules::export_of(self.heap, way.at) {
            way.fields.push(shortened(&name));
            way.at = context;
            way.context = Some(context);
            return true;
        }
        let Some(edge) = self.naming_edge(way.at) else { return false };
        let holder = self.heap.source(edge);
        if self.heap.edge_kind(edge) == EdgeKind::CONTEXT {
            way.context = Some(holder);
        }
        way.fields.extend(self.field_name(edge));
        way.at = holder;
        true
    }

    /// Returns the name of the best holder of `node`, with the field that refers to `node`.
    pub fn held_by(&self, node: u32) -> Option<String> {
        let edge = self.naming_edge(node)?;
        let holder = self.call(self.heap.source(edge)).text;
        Some(match self.field_name(edge) {
            Some(field) if field.starts_with('[') => format!("{holder}{field}"),
            Some(field) => format!("{holder}.{field}"),
            None => holder,
        })
    }

    fn called(&self, way: Way) -> Called {
        let Way { at: base_node, mut fields, context } = way;
        fields.reverse();
        if context.is_some() || self.is_context(base_node) {
            let place = self.place_of_context(base_node);
            let script = place.as_ref().map_or("a function", |place| place.script.as_str()).to_owned();
            let text = if fields.is_empty() {
                format!("variables of {script}")
            } else {
                format!("{} (variable in {script})", joined(&fields))
            };
            return Called {
                text,
                fields,
                base: script,
                is_variable: true,
                base_node,
                place,
                part_of: None,
                is_of_program_class: false,
                class: None,
                is_held_by_the_runtime: false,
            };
        }
        let place = self.heap.location(base_node).map(|location| place_of(&self.scripts, location));
        // Exports of Node's modules are named as programs write them: `fs.readCache`.
        let base =
            modules::builtin_of_exports(self.heap, base_node).unwrap_or_else(|| self.own_name(base_node));
        let text = match fields.first() {
            None => base.clone(),
            Some(first) if first.starts_with('[') => format!("{base}{}", joined(&fields)),
            Some(_) => format!("{base}.{}", joined(&fields)),
        };
        Called {
            text,
            fields,
            base,
            is_variable: false,
            base_node,
            place,
            part_of: None,
            is_of_program_class: false,
            class: None,
            is_held_by_the_runtime: false,
        }
    }

    /// Returns the class of an object, the name of a function, or the group of any other node.
    pub(crate) fn own_name(&self, node: u32) -> String {
        match self.heap.kind(node) {
            NodeKind::CLOSURE => match self.heap.name(node) {
                name if name.is_empty() => "function".to_owned(),
                name => format!("function {}", self.name_in_sources(node, name)),
            },
            NodeKind::OBJECT if self.is_global(node) => "globalThis".to_owned(),
            NodeKind::SYNTHETIC if self.heap.name(node).is_empty() => "(root)".to_owned(),
            NodeKind::SYNTHETIC | NodeKind::HIDDEN if !self.heap.name(node).is_empty() => {
                self.heap.name(node).into_owned()
            }
            NodeKind::OBJECT => self.name_in_sources(node, self.heap.class_name(node)),
            _ => self.heap.class_name(node).into_owned(),
        }
    }

    /// Returns the original name of a function, or of an object's class, that a minifier renamed.
    pub(crate) fn name_in_sources(&self, node: u32, name: Cow<'_, str>) -> String {
        let location = self.heap.location(node);
        let original = location.and_then(|location| self.scripts.original_name(location, &name));
        original.unwrap_or_else(|| name.into_owned())
    }

    fn is_global(&self, node: u32) -> bool {
        is_global_class(&self.heap.name(node))
    }

    /// Whether a name begins with an object of the runtime to which programs add properties
    /// (`process`, a module), followed by a field of the program. Fields of the runtime that grow
    /// are excluded.
    pub(crate) fn hangs_on_the_runtime(&self, called: &Called) -> bool {
        let is_own = |field: &String| field.starts_with(['<', '_']) || field == "moduleLoadList";
        let base = called.base_node;
        self.is_known_of_the_runtime(base)
            && !self.is_global(base)
            && called.fields.first().is_some_and(|first| !is_own(first))
    }

    /// Whether the node is the exports of a Node module.
    pub(crate) fn is_builtin_module(&self, node: u32) -> bool {
        modules::builtin_of_exports(self.heap, node).is_some()
    }

    /// Whether the node is the context of a function.
    pub(crate) fn is_context(&self, node: u32) -> bool {
        matches!(self.heap.kind(node), NodeKind::OBJECT | NodeKind::HIDDEN)
            && self.heap.name(node) == "system / Context"
    }

    /// Whether the node's own class says what it is. Generic classes such as `Array` do not.
    fn has_own_name(&self, node: u32) -> bool {
        match self.heap.kind(node) {
            NodeKind::OBJECT => {
                let name = self.heap.name(node);
                !is_generic_class(&name) && name != "system / Context"
            }
            NodeKind::NATIVE => !is_of_the_engine(self.heap, node),
            NodeKind::SYNTHETIC => true,
            NodeKind::CLOSURE => {
                let place = self.heap.location(node).map(|location| place_of(&self.scripts, location));
                !self.heap.name(node).is_empty() && place.is_some_and(|place| !place.is_of_the_runtime())
            }
            _ => false,
        }
    }

    /// Returns a field as it appears in a name, or `None` for fields that only the engine sees.
    fn field_name(&self, edge: u32) -> Option<String> {
        let holder = self.heap.source(edge);
        let is_storage = self.heap.kind(holder) == NodeKind::ARRAY;
        match (self.heap.edge_kind(edge), self.heap.edge_name(edge)) {
            (EdgeKind::ELEMENT, _) => Some("[…]".to_owned()),
            (EdgeKind::PROPERTY, _)
                if is_dictionary(self.heap, holder) && !modules::is_exports(self.heap, holder) =>
            {
                Some("[…]".to_owned())
            }
            (EdgeKind::INTERNAL | EdgeKind::HIDDEN, _) if is_storage => Some("[…]".to_owned()),
            (EdgeKind::CONTEXT, EdgeName::Name(name)) => {
                Some(shortened(&self.variable_in_sources(holder, name)))
            }
            (EdgeKind::PROPERTY | EdgeKind::SHORTCUT, EdgeName::Name(name)) => Some(shortened(&name)),
            (EdgeKind::INTERNAL, EdgeName::Name(name)) => match &*name {
                "" | "elements" | "table" | "properties" | "context" | "previous" | "value" | "extension" => {
                    None
                }
                "parameters_and_registers" => Some("<variables>".to_owned()),
                name if name.ends_with(')') && name.contains(" pair in WeakMap") => Some("[…]".to_owned()),
                name => Some(shortened(name)),
            },
            _ => None,
        }
    }

    /// Describes how an edge holds its target: `.name`, `[3]`, `variable name`, `(internal) name`.
    pub(crate) fn edge_in_words(&self, edge: u32) -> String {
        let heap = self.heap;
        match (heap.edge_kind(edge), heap.edge_name(edge)) {
            (EdgeKind::ELEMENT, EdgeName::Index(index)) => format!("[{index}]"),
            (EdgeKind::CONTEXT, EdgeName::Name(name)) => {
                format!("variable {}", self.variable_in_sources(heap.source(edge), name))
            }
            (EdgeKind::PROPERTY, EdgeName::Name(name)) => format!(".{name}"),
            (_, EdgeName::Name(name)) => format!("({name})"),
            (_, EdgeName::Index(index)) => format!("({index})"),
        }
    }
}
